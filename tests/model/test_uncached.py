"""Training without the store: the same numbers where nothing differs, others where the store rules something out."""

from __future__ import annotations

import pytest
import torch
from conftest import make_backbone, make_example, noisy_adapter

from pipeline.federated.local import LocalClientData
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.randomness import Randomness
from pipeline.model.backbone import Backbone, Limits
from pipeline.model.entry import Entry
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.uncached import UncachedBackbone, load_ids


def entries_of(backbone: Backbone, count: int = 3) -> list[Entry]:
    rendered = [backbone.render(make_example(i), Limits(90, 48)) for i in range(count)]
    return [Entry(str(i), str(i), len(r.target), len(r.source), r.source, r.target) for i, r in enumerate(rendered)]


def hidden(backbone: Backbone, *, everywhere: bool = False, dropped: float = 0.0) -> torch.Tensor:
    entries = entries_of(backbone)
    seen = UncachedBackbone(backbone, everywhere, dropped)
    return seen.target_hidden(load_ids(entries, backbone.device)(["0", "1", "2"]), noisy_adapter(backbone))


def test_without_the_store_nothing_changes(backbone: Backbone) -> None:
    prefixes = [
        backbone.encode(backbone.render(make_example(i), Limits(90, 48)), for_generation=False)[0] for i in range(3)
    ]
    stored = backbone.target_hidden(prefixes, noisy_adapter(backbone))
    torch.testing.assert_close(hidden(backbone), stored, atol=1e-4, rtol=1e-4)


def test_an_adapted_prompt_changes_a_causal_model_alone(backbone: Backbone) -> None:
    same = torch.allclose(hidden(backbone, everywhere=True), hidden(backbone), atol=1e-5)
    assert same == (isinstance(backbone, Seq2SeqBackbone))


def test_dropout_is_for_training(backbone: Backbone) -> None:
    with torch.no_grad():
        assert torch.equal(hidden(backbone, dropped=0.5), hidden(backbone))
    assert not torch.allclose(hidden(backbone, dropped=0.5), hidden(backbone), atol=1e-4)


@pytest.mark.parametrize("dropped", [0.0, 0.5])
def test_training_repeats_itself(dropped: float) -> None:
    backbone = make_backbone("llama")
    entries = entries_of(backbone, 4)
    training = LocalTraining(1e-2, 0.0, 2, 1, 1.0)

    def fit() -> dict[str, torch.Tensor]:
        seen = UncachedBackbone(backbone, everywhere=True, dropped=dropped)
        data = LocalClientData(entries[:3], entries[3:], seen, load_ids(entries, backbone.device), training)
        return data.fit(noisy_adapter(backbone), Randomness(1, "a", 1)).adapter

    first, again = fit(), fit()
    assert all(torch.equal(first[name], again[name]) for name in first)
