"""Decoding equals transformers' own `generate`, where both can say what is wanted."""

from __future__ import annotations

import pytest
import torch
from conftest import make_backbone, noisy_adapter, render_all

from pipeline.model.adapter import Adapter, adapting, attached
from pipeline.model.backbone import Backbone, Prefix, Rendered, Row, without_gaps
from pipeline.model.causal import CausalBackbone
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import banned_tokens, generate

RULES = {
    "greedy": DecodingRule(max_tokens=20),
    "greedy without repeats": DecodingRule(max_tokens=20, no_repeat_ngram=2, min_tokens=6),
    "beams": DecodingRule(beams=3, max_tokens=20),
    "beams with all knobs": DecodingRule(beams=4, max_tokens=24, no_repeat_ngram=2, min_tokens=8, length_penalty=2.0),
}


def decodable(backbone: Backbone, rendered: Rendered) -> Prefix:
    prefix, extra = backbone.encode(rendered, for_generation=True)
    return prefix | extra


def by_transformers(backbone: Backbone, rendered: Rendered, adapter: Adapter, rule: DecodingRule) -> list[int]:
    model = backbone.model  # type: ignore[attr-defined]
    options = {
        "max_new_tokens": rule.max_tokens,
        "num_beams": rule.beams,
        "length_penalty": rule.length_penalty,
        "no_repeat_ngram_size": rule.no_repeat_ngram,
        "min_new_tokens": rule.min_tokens or None,
        "do_sample": False,
        "early_stopping": False,
    }
    ids = torch.tensor([rendered.source])
    if isinstance(backbone, CausalBackbone):
        # Embeddings instead of ids: the no-repeat rule then sees what is generated, not the source.
        tokens = model.generate(
            inputs_embeds=model.get_input_embeddings()(ids), attention_mask=torch.ones_like(ids), **options
        )[0].tolist()
    else:
        with attached(backbone._layers, adapting(adapter, post_norm=backbone.post_norm)):  # type: ignore[attr-defined]
            tokens = model.generate(**backbone._encoder_arguments(ids), **options)[0].tolist()[1:]  # type: ignore[attr-defined]
    return tokens[: tokens.index(backbone.end_token)] if backbone.end_token in tokens else tokens


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_equal_to_transformers(backbone: Backbone, rule: DecodingRule) -> None:
    """In one batch of unequal lengths. A causal model's prompt is unadapted, which `generate` cannot express."""
    adapter = {} if isinstance(backbone, CausalBackbone) else noisy_adapter(backbone)
    rendered = render_all(backbone)
    prefixes = [decodable(backbone, r) for r in rendered]
    ours = generate(backbone, prefixes, [Row(i, adapter) for i in range(len(prefixes))], rule)
    assert ours == [by_transformers(backbone, r, adapter, rule) for r in rendered]


@pytest.mark.parametrize("rule", [RULES["greedy"], RULES["beams"]], ids=["greedy", "beams"])
def test_adapted_causal_decoding_follows_the_uncached_model(rule: DecodingRule) -> None:
    """Greedy: each token is the argmax of the whole uncached model, adapters on at the same positions as in training.
    Beams: the mean log-probability a token is at least greedy's, in these cases.
    """
    backbone, adapter = make_backbone("llama"), noisy_adapter(make_backbone("llama"))
    for rendered in render_all(backbone):
        prefix = decodable(backbone, rendered)
        tokens = generate(backbone, [prefix], [Row(0, adapter)], rule)[0]
        written = Rendered(rendered.source, (*tokens, backbone.end_token), 0, 0)
        logits = backbone.head(backbone.reference_hidden([written], adapter))[: len(tokens)]
        if rule.beams == 1:
            assert logits.argmax(-1).tolist() == tokens
        else:
            greedy = generate(backbone, [prefix], [Row(0, adapter)], RULES["greedy"])[0]
            other = Rendered(rendered.source, (*greedy, backbone.end_token), 0, 0)
            score = _mean_log_probability(backbone, written, adapter, len(tokens))
            assert score >= _mean_log_probability(backbone, other, adapter, len(greedy)) - 1e-4


def _mean_log_probability(backbone: Backbone, written: Rendered, adapter: Adapter, count: int) -> float:
    scores = backbone.head(backbone.reference_hidden([written], adapter)).log_softmax(-1)[:count]
    return scores.gather(1, torch.tensor(written.target[:count])[:, None]).mean().item()


@pytest.mark.parametrize("rule", [RULES["greedy"], RULES["beams"]], ids=["greedy", "beams"])
def test_a_row_depends_on_its_own_prefix_and_adapter_alone(backbone: Backbone, rule: DecodingRule) -> None:
    """Rows that end at different steps, some of one prefix and some of one adapter, together and each alone."""
    prefixes = [decodable(backbone, r) for r in render_all(backbone, 5)]
    first = noisy_adapter(backbone, 0)
    second = {name: 10 * tensor for name, tensor in noisy_adapter(backbone, 1).items()}
    rows = [Row(3, first), Row(0, second), Row(1, second), Row(4, first), Row(0, first), Row(2, second), Row(3, second)]
    together = generate(backbone, prefixes, rows, rule)
    alone = [generate(backbone, [prefixes[row.source]], [Row(0, row.adapter)], rule)[0] for row in rows]
    assert together == alone
    assert together[0] != together[6], "two adapters on one prefix"


@pytest.mark.parametrize("beams", [1, 3])
def test_a_text_that_is_still_open_ends_where_the_model_forces_it_to(beams: int) -> None:
    """BART's own generation puts the end token last; so does ours, and beams are ranked with it."""
    backbone = make_backbone("bart")
    backbone.model.generation_config.forced_eos_token_id = backbone.end_token  # type: ignore[attr-defined]
    backbone.end_token_forced = backbone.end_token
    rule = DecodingRule(beams=beams, max_tokens=6)
    for rendered in render_all(backbone):
        ours = generate(backbone, [decodable(backbone, rendered)], [Row(0, {})], rule)[0]
        assert ours == by_transformers(backbone, rendered, {}, rule)
        assert len(ours) <= 5


def test_unused_places_are_filled_from_the_end() -> None:
    """Of seven places 0, 2 and 5 are not in use: 6 takes the place of 0, 4 that of 2, and 1 and 3 stay."""
    assert without_gaps([1, 3, 4, 6]) == [6, 1, 4, 3]


def test_banned_tokens_complete_a_known_ngram() -> None:
    """After 1 2 3 1 2, the 3-gram 1 2 3 is known, so 3 is banned; after 1 2 nothing is."""
    assert banned_tokens([1, 2, 3, 1, 2], 3) == {3}
    assert banned_tokens([1, 2], 3) == set()
    assert banned_tokens([4, 5], 1) == {4, 5}
