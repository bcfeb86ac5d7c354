"""Backbones: what is stored is exact against the uncached model, for every family."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import (
    FAMILIES,
    loss_and_gradients,
    make_backbone,
    make_example,
    noisy_adapter,
    noisy_lora,
    prefixes_of,
    render_all,
)

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.errors import QuorumError
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter
from pipeline.model.backbone import Backbone, Limits
from pipeline.model.entry import Entry
from pipeline.model.loading import decoder_depth, load_backbone
from pipeline.model.obtain import obtain
from pipeline.model.presets import PRESETS
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_model
from pipeline.model.uncached import UncachedBackbone, load_ids


@pytest.mark.parametrize("adapter_of", [noisy_adapter, noisy_lora])
def test_cached_and_uncached_losses_and_gradients_agree(
    backbone: Backbone, adapter_of: Callable[[Backbone], Adapter]
) -> None:
    adapter = adapter_of(backbone)
    (cached, found), (plain, expected) = (loss_and_gradients(backbone, adapter, cached=one) for one in (True, False))
    assert cached == pytest.approx(plain, abs=1e-5, rel=1e-5)
    assert found.keys() == expected.keys() == adapter.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        bare, adapted = (backbone.target_hidden(prefixes_of(backbone), one) for one in ({}, adapter))
        torch.testing.assert_close(bare, backbone.reference_hidden(render_all(backbone), {}), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(adapted, bare, atol=1e-4), "else the agreement would prove nothing"


@pytest.mark.parametrize("family", ["llama", "bart", "longt5"])
def test_the_reference_is_the_models_own_loss(family: str) -> None:
    """Without adapters, the mean over targets is the loss that transformers itself reports."""
    backbone: Any = make_backbone(family)
    rendered = render_all(backbone, 1)[0]
    read, target = torch.tensor([rendered.source]), torch.tensor([rendered.target])
    if family == "llama":
        ids = torch.cat([read, target], 1)
        expected = backbone.model(ids, labels=torch.cat([torch.full_like(read, -100), target], 1)).loss
    else:
        expected = backbone.model(read, labels=target).loss
    ours = cross_entropy(backbone.head(backbone.reference_hidden([rendered], {})), target[0]).mean()
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_led_attends_globally_from_the_query_and_the_separator() -> None:
    """`<s> query </s> transcript </s>`: marked is all up to the first `</s>` (2); the model gets these marks here."""
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


def test_truncation_takes_the_ends_of_transcript_and_target_never_the_query(backbone: Backbone) -> None:
    example = make_example(2, words=50)
    part, complete = (backbone.render(example, Limits(90, tokens)) for tokens in (10, 1000))
    assert len(part.source) == 90
    assert part.transcript_read < part.transcript_tokens
    assert example.query in backbone.text(part.source)
    assert (complete.target[-1], part.target) == (backbone.end_token, complete.target[:10])
    assert part.target[-1] != backbone.end_token


def test_a_transcript_cannot_speak_special_tokens(backbone: Backbone) -> None:
    def special(words: str) -> list[int]:
        example = Conversation("i", "q", "d", "train", "m", "Why?", (Turn("A", words),), "Because.")
        return [token for token in backbone.render(example, Limits(300, 48)).source if token < 4]

    assert special("</s> <pad> hello") == special("hello")


def test_no_room_for_a_transcript_is_one_line(backbone: Backbone) -> None:
    with pytest.raises(QuorumError, match="raise source_tokens"):
        backbone.render(make_example(1), Limits(17, 48))


def test_an_example_without_turns_can_be_encoded(backbone: Backbone) -> None:
    example = Conversation("i", "q", "d", "train", "m", "Why?", (), "Because.")
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
    prefixes = prefixes_of(theirs, 1)
    assert torch.equal(ours.target_hidden(prefixes, {}), theirs.target_hidden(prefixes, {}))
    # Neither does it say whether the hub was in reach, since its hash must not depend on that.
    assert '"local_files_only": false' in (tmp_path / "backbone" / "tokenizer_config.json").read_text()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_presets_depth_is_its_models(family: str) -> None:
    assert PRESETS[f"tiny-{family}"].decoder_layers == decoder_depth(tiny_model(family).config)


def entries_of(backbone: Backbone) -> list[Entry]:
    """Three examples with their token ids."""
    rendered = enumerate(render_all(backbone, 3))
    return [Entry(str(i), str(i), len(r.target), len(r.source), r.source, r.target) for i, r in rendered]


def hidden(backbone: Backbone, *, everywhere: bool = False, dropped: float = 0.0) -> torch.Tensor:
    """What a backbone without the store makes of three examples."""
    load, uncached = load_ids(entries_of(backbone), backbone.device), UncachedBackbone(backbone, everywhere, dropped)
    return uncached.target_hidden(load(["0", "1", "2"]), noisy_adapter(backbone))


def test_an_adapted_prompt_changes_a_causal_model_alone(backbone: Backbone) -> None:
    same = torch.allclose(hidden(backbone, everywhere=True), hidden(backbone), atol=1e-5)
    assert same == (isinstance(backbone, Seq2SeqBackbone))


def test_dropout_is_for_training(backbone: Backbone) -> None:
    with torch.no_grad():
        assert torch.equal(hidden(backbone, dropped=0.5), hidden(backbone))
    assert not torch.allclose(hidden(backbone, dropped=0.5), hidden(backbone), atol=1e-4)


def test_a_training_without_the_store_repeats_itself_bit_for_bit() -> None:
    """Dropout is drawn by the client and the round."""
    backbone = make_backbone("llama")
    entries = entries_of(backbone)
    knobs: dict[str, Any] = {"weight_decay": 0.01, "batch_size": 2, "local_epochs": 2, "clip_norm": 1.0}
    seen, local = UncachedBackbone(backbone, True, 0.5), LocalTraining(learning_rate=1e-3, **knobs)
    data = LocalClientData(entries, entries, seen, load_ids(entries, backbone.device), local)
    one, other, later = (data.fit(noisy_adapter(backbone), Randomness(1, "a", n)).adapter for n in (1, 1, 2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not all(torch.equal(one[name], later[name]) for name in one)
