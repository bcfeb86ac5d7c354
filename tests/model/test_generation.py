"""Decoding equals transformers' own `generate`, where both can say what is wanted."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import make_backbone, noisy_adapter, noisy_lora, prefixes_of, render_all

from pipeline.model.adapter import Adapter, adapting, attached
from pipeline.model.backbone import Backbone, Rendered, Row, without_gaps
from pipeline.model.causal import CausalBackbone
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import _beam_search, banned_tokens, generate
from pipeline.model.shared_source import RowsBySource

RULES = {
    "greedy": DecodingRule(max_tokens=20),
    "greedy without repeats": DecodingRule(max_tokens=20, no_repeat_ngram=2, min_tokens=6),
    "beams": DecodingRule(beams=3, max_tokens=20),
    "beams with all knobs": DecodingRule(beams=4, max_tokens=24, no_repeat_ngram=2, min_tokens=8, length_penalty=2.0),
}


def by_transformers(backbone: Backbone, rendered: Rendered, adapter: Adapter, rule: DecodingRule) -> list[int]:
    model = backbone.model  # type: ignore[attr-defined]
    options = {"do_sample": False, "early_stopping": False, "num_beams": rule.beams}
    options |= {"max_new_tokens": rule.max_tokens, "min_new_tokens": rule.min_tokens or None}
    options |= {"length_penalty": rule.length_penalty, "no_repeat_ngram_size": rule.no_repeat_ngram}
    ids = torch.tensor([rendered.source])
    if isinstance(backbone, CausalBackbone):
        # Embeddings instead of ids: the no-repeat rule then sees what is generated, not the source.
        read = {"inputs_embeds": model.get_input_embeddings()(ids), "attention_mask": torch.ones_like(ids)}
        tokens = model.generate(**read, **options)[0].tolist()
    else:
        with attached(backbone._layers, adapting(adapter, post_norm=backbone.post_norm)):  # type: ignore[attr-defined]
            tokens = model.generate(**backbone._encoder_arguments(ids), **options)[0].tolist()[1:]  # type: ignore[attr-defined]
    return tokens[: tokens.index(backbone.end_token)] if backbone.end_token in tokens else tokens


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_equal_to_transformers(backbone: Backbone, rule: DecodingRule) -> None:
    """In one batch of unequal lengths. A causal model's prompt is unadapted, which `generate` cannot express."""
    adapter = {} if isinstance(backbone, CausalBackbone) else noisy_adapter(backbone)
    prefixes = prefixes_of(backbone, for_generation=True)
    ours = generate(backbone, prefixes, [Row(i, adapter) for i in range(len(prefixes))], rule)
    assert ours == [by_transformers(backbone, r, adapter, rule) for r in render_all(backbone)]


@pytest.mark.parametrize("adapter_of", [noisy_adapter, noisy_lora])
def test_greedy_decoding_writes_what_the_uncached_model_would(backbone: Backbone, adapter_of: Any) -> None:
    """Two adapters in one call; each token is the argmax of a full pass, adapted where training adapts."""
    (rendered,), adapters = render_all(backbone, 1), [adapter_of(backbone, seed) for seed in (1, 2)]
    prefixes = prefixes_of(backbone, 1, for_generation=True)
    texts = generate(backbone, prefixes, [Row(0, one) for one in adapters], RULES["greedy"])
    for adapter, tokens in zip(adapters, texts, strict=True):
        written = Rendered(rendered.source, (*tokens, backbone.end_token), 0, 0)
        best = backbone.head(backbone.reference_hidden([written], adapter)).argmax(-1).tolist()
        free = int(backbone.start_token_forced is not None)
        assert best[free : len(tokens)] == tokens[free:]


@pytest.mark.parametrize("rule", [RULES["greedy"], RULES["beams"]], ids=["greedy", "beams"])
def test_a_row_depends_on_its_own_prefix_and_adapter_alone(backbone: Backbone, rule: DecodingRule) -> None:
    """Rows that end at different steps, some of one prefix and some of one adapter, together and each alone."""
    prefixes = prefixes_of(backbone, 5, for_generation=True)
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
    for rendered, prefix in zip(render_all(backbone), prefixes_of(backbone, for_generation=True), strict=True):
        ours = generate(backbone, [prefix], [Row(0, {})], rule)[0]
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


def test_a_source_without_rows_is_dropped() -> None:
    """Of three sources the rows that stay read 2 and 0: source 2 takes the place of 1, source 0 stays."""
    rows, left = RowsBySource([2, 1, 0], 3, torch.device("cpu")).select(torch.tensor([0, 2]))
    assert left == [0, 2]
    assert (rows.owners, rows.sources, rows.places) == ([1, 0], 2, 1)


@pytest.fixture
def chain() -> Any:
    """A model whose next word depends on the last one alone; 0 ends, 3 begins."""
    probabilities = torch.tensor([[1.0, 0, 0, 0], [0.4, 0.35, 0.25, 0], [0.9, 0.05, 0.05, 0], [0.1, 0.5, 0.4, 0]])
    state = SimpleNamespace(step=lambda tokens: probabilities[tokens].log(), select=lambda rows: None)
    chain: Any = SimpleNamespace(start_token_forced=None, end_token_forced=None, end_token=0)
    chain.decoding = lambda _prefixes, rows, _new: (state, torch.full((len(rows),), 3))
    return chain


def test_one_beam_is_greedy_and_two_find_what_is_more_probable(chain: Any) -> None:
    """Greedy takes 1 (0.5), then the end (0.4): 0.2. The second beam goes on from 2 (0.4), then the end (0.9): 0.36."""
    assert _beam_search(chain, [], [Row(0, {})], DecodingRule(beams=1, max_tokens=5)) == [[1, 0]]
    found = [generate(chain, [], [Row(0, {})], DecodingRule(beams=beams, max_tokens=5)) for beams in (1, 2)]
    assert found == [[[1]], [[2]]]


def test_no_text_ends_before_its_least_number_of_tokens(chain: Any) -> None:
    """Greedy would end after 1; of two tokens, the second is 1 again (0.35)."""
    assert generate(chain, [], [Row(0, {})], DecodingRule(max_tokens=5, min_tokens=2)) == [[1, 1]]
