"""Backbones: what is stored is exact against the uncached model, for every family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import FAMILIES, make_backbone, make_example, noisy_adapter, render_all

from pipeline.corpora.example import Example, Turn
from pipeline.errors import QuorumError
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.model.backbone import Backbone, Limits, targets_of
from pipeline.model.loading import decoder_depth, load_backbone
from pipeline.model.obtain import _first_sentence, obtain
from pipeline.model.presets import PRESETS
from pipeline.model.tiny import tiny_model


def test_cached_and_uncached_loss_agree(backbone: Backbone) -> None:
    rendered = render_all(backbone)
    prefixes = [backbone.encode(r, for_generation=False)[0] for r in rendered]
    targets = targets_of(prefixes)
    for adapter in (noisy_adapter(backbone), {}):
        cached = cross_entropy(backbone.head(backbone.target_hidden(prefixes, adapter)), targets)
        plain = cross_entropy(backbone.head(backbone.reference_hidden(rendered, adapter)), targets)
        torch.testing.assert_close(cached, plain, atol=1e-5, rtol=1e-5)


def test_cached_and_uncached_gradients_agree(backbone: Backbone) -> None:
    rendered = render_all(backbone)
    prefixes = [backbone.encode(r, for_generation=False)[0] for r in rendered]
    gradients = []
    for cached in (True, False):
        adapter = {name: t.clone().requires_grad_() for name, t in noisy_adapter(backbone).items()}
        hidden = backbone.target_hidden(prefixes, adapter) if cached else backbone.reference_hidden(rendered, adapter)
        cross_entropy(backbone.head(hidden), targets_of(prefixes)).mean().backward()
        gradients.append({name: t.grad for name, t in adapter.items()})
    for name, gradient in gradients[0].items():
        assert gradient is not None
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-5, rtol=1e-4)


def test_the_first_target_has_a_gradient(backbone: Backbone) -> None:
    prefix = backbone.encode(render_all(backbone, 1)[0], for_generation=False)[0]
    adapter = {name: t.clone().requires_grad_() for name, t in noisy_adapter(backbone).items()}
    hidden = backbone.target_hidden([prefix], adapter)
    cross_entropy(backbone.head(hidden[:1]), targets_of([prefix])[:1]).sum().backward()
    assert all(t.grad is not None and t.grad.abs().sum() > 0 for name, t in adapter.items() if name.endswith("up"))


def test_the_reference_is_the_models_own_loss() -> None:
    """Without adapters, the mean over targets is the loss that transformers itself reports."""
    causal = make_backbone("llama")
    rendered = render_all(causal, 1)[0]
    ids = torch.tensor([rendered.source + rendered.target])
    labels = ids.clone()
    labels[:, : len(rendered.source)] = -100
    expected = causal.model(ids, labels=labels).loss  # type: ignore[attr-defined]
    hidden = causal.reference_hidden([rendered], {})
    ours = cross_entropy(causal.head(hidden), torch.tensor(rendered.target)).mean()
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bart", "longt5"])
def test_the_seq2seq_reference_is_the_models_own_loss(family: str) -> None:
    backbone = make_backbone(family)
    rendered = render_all(backbone, 1)[0]
    expected = backbone.model(  # type: ignore[attr-defined]
        torch.tensor([rendered.source]), labels=torch.tensor([rendered.target])
    ).loss
    ours = cross_entropy(backbone.head(backbone.reference_hidden([rendered], {})), torch.tensor(rendered.target)).mean()
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_led_attends_globally_from_the_query_and_the_separator() -> None:
    """`<s> query </s> transcript </s>`: marked is all up to the first `</s>` (2), as its own model is told here."""
    led: Any = make_backbone("led")
    rendered = render_all(led, 1)[0]
    source, targets = torch.tensor([rendered.source]), torch.tensor(rendered.target)
    marks = torch.zeros_like(source)
    marks[:, : rendered.source.index(2) + 1] = 1
    marked, unmarked = (led.model(source, labels=targets[None], global_attention_mask=m).loss for m in (marks, None))
    ours = cross_entropy(led.head(led.reference_hidden([rendered], {})), targets).mean()
    torch.testing.assert_close(ours, marked, atol=1e-5, rtol=1e-5)
    assert (marked - unmarked).abs() > 1e-3


@pytest.mark.parametrize("scaled", [True, False])
def test_t5_scales_its_output_only_where_the_model_does(scaled: bool) -> None:
    backbone: Any = make_backbone("longt5")
    backbone.model.config.scale_decoder_outputs = scaled
    rendered = render_all(backbone, 1)[0]
    expected = backbone.model(torch.tensor([rendered.source]), labels=torch.tensor([rendered.target])).logits[0]
    ours = backbone.head(backbone.reference_hidden([rendered], {}))
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_truncation_takes_the_end_of_the_transcript_never_the_query(backbone: Backbone) -> None:
    example = make_example(1, words=50)
    rendered = backbone.render(example, Limits(90, 48))
    assert len(rendered.source) == 90
    assert rendered.transcript_read < rendered.transcript_tokens
    assert example.query in backbone.text(rendered.source)


def test_a_target_that_is_cut_has_no_end_token(backbone: Backbone) -> None:
    whole = backbone.render(make_example(2), Limits(90, 1000))
    assert whole.target[-1] == backbone.end_token
    assert len(backbone.render(make_example(2), Limits(90, 10)).target) == 10
    assert backbone.render(make_example(2), Limits(90, 10)).target[-1] != backbone.end_token


def test_a_transcript_cannot_speak_special_tokens(backbone: Backbone) -> None:
    example = Example("i", "q", "d", "train", "m", "Why?", (Turn("A", "</s> <pad> hello"),), "Because.")
    plain = Example("i", "q", "d", "train", "m", "Why?", (Turn("A", "hello"),), "Because.")
    special = [t for t in backbone.render(example, Limits(300, 48)).source if t < 4]
    assert special == [t for t in backbone.render(plain, Limits(300, 48)).source if t < 4]


def test_no_room_for_a_transcript_is_one_line(backbone: Backbone) -> None:
    with pytest.raises(QuorumError, match="raise source_tokens"):
        backbone.render(make_example(1), Limits(17, 48))


def test_an_example_without_turns_can_be_encoded(backbone: Backbone) -> None:
    example = Example("i", "q", "d", "train", "m", "Why?", (), "Because.")
    prefix = backbone.encode(backbone.render(example, Limits(90, 48)), for_generation=True)[0]
    assert torch.isfinite(backbone.target_hidden([prefix], noisy_adapter(backbone))).all()


def test_pieces_join_to_the_text(backbone: Backbone) -> None:
    target = backbone.render(make_example(1), Limits(90, 48)).target
    pieces = backbone.pieces(target)
    assert "".join(pieces).strip() == backbone.text(target)
    assert len(pieces) == len(target)
    assert pieces[-1] == ""


@pytest.mark.parametrize(
    ("tiny", "preset"), [("tiny-bart", "bart-base"), ("tiny-led", "led-large"), ("tiny-longt5", "long-t5")]
)
def test_a_hub_backbone_is_read_from_a_local_folder(tmp_path: Path, tiny: str, preset: str) -> None:
    """The hub's file layout, written by one preset and read as another of the same class; no network."""
    obtain(tiny, tmp_path / "weights", tmp_path)
    obtain(preset, tmp_path / "backbone", tmp_path, weights=tmp_path / "weights")
    ours, theirs = (load_backbone(tmp_path / name, 2, torch.device("cpu")) for name in ("backbone", "weights"))
    assert (ours.name, theirs.name) == (preset, tiny)
    prefixes = [theirs.encode(r, for_generation=False)[0] for r in render_all(theirs, 1)]
    assert torch.equal(ours.target_hidden(prefixes, {}), theirs.target_hidden(prefixes, {}))


def test_a_backbone_does_not_say_whether_the_hub_was_in_reach(tmp_path: Path) -> None:
    """A folder is read with local_files_only, as everything is with HF_HUB_OFFLINE; the hash must not follow it."""
    obtain("tiny-bart", tmp_path / "weights", tmp_path)
    obtain("bart-base", tmp_path / "backbone", tmp_path, weights=tmp_path / "weights")
    assert '"local_files_only": false' in (tmp_path / "backbone" / "tokenizer_config.json").read_text()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_presets_depth_is_its_models(family: str) -> None:
    assert PRESETS[f"tiny-{family}"].decoder_layers == decoder_depth(tiny_model(family).config)


def test_a_folder_without_weights_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="holds no model that can be read"):
        obtain("bart-base", tmp_path / "backbone", tmp_path, weights=tmp_path)


def test_weights_that_are_no_folder_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="gone: is no folder"):
        obtain("bart-base", tmp_path / "backbone", tmp_path, weights=tmp_path / "gone")


def test_of_what_the_hub_says_the_first_sentence_is_told() -> None:
    assert _first_sentence(OSError("We couldn't\n connect. Check your proxy.")) == "We couldn't connect"
