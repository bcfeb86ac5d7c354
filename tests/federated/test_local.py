"""A client's training: what moves, what stops it, what is noted of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from conftest import noisy_adapter
from federations import BACKBONE, FEDAVG, INITIAL, MIDDLE, SINGLE, Make, locals_of, same, train
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.distillation import DISTILLED, Distillation
from pipeline.federated.objectives.objective import ItemLosses, Objective
from pipeline.federated.objectives.threshold import EVERY_TOKEN, Threshold
from pipeline.federated.randomness import Randomness, batch_order
from pipeline.federated.token_figures import token_cross_entropy
from pipeline.federated.wire import transmitted
from pipeline.model.adapter import Adapter
from pipeline.model.entry import Entry

TAUGHT = Distillation(Threshold(MIDDLE), 0.2).with_teacher(INITIAL)
"""Distilling about half of the tokens from the initial adapter."""


def test_the_order_of_names_changes_no_bit(make_client: Make) -> None:
    """The norm that clips sums over tensors; here clipping is always active."""
    backwards = dict(reversed(noisy_adapter(BACKBONE).items()))
    results = [
        make_client(BACKBONE, 0, 5, clip_norm=1e-3).fit(adapter, Randomness(1, "a", 1)).adapter
        for adapter in (backwards, noisy_adapter(BACKBONE))
    ]
    assert same(*results)
    assert list(transmitted(backwards, {})[0]) == sorted(backwards)


def test_a_gradient_that_is_not_finite_stops_the_run(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(float("inf")))
    with pytest.raises(QuorumError, match="the norm of the gradient is inf"):
        make_client(BACKBONE, 0, 3).fit(INITIAL, Randomness(1, "a", 1))


def test_a_loss_that_is_not_finite_stops_the_run(make_client: Make) -> None:
    broken = {name: torch.full_like(t, torch.nan) for name, t in INITIAL.items()}
    with pytest.raises(QuorumError, match="round 4, client a, step 1: the loss is nan"):
        make_client(BACKBONE, 0, 3).fit(broken, Randomness(1, "a", 4))


def test_training_moves_every_tensor(clients: dict[str, LocalClientData]) -> None:
    moved = locals_of(train(SINGLE, clients))["Academic"]
    assert all(not torch.equal(moved[name], INITIAL[name]) for name in INITIAL)


def test_training_does_not_touch_its_start(clients: dict[str, LocalClientData]) -> None:
    before = {name: t.clone() for name, t in INITIAL.items()}
    train(FEDAVG, clients, rounds=1)
    assert same(before, INITIAL)


def test_distilled_bits_lie_in_the_order_of_the_examples(make_client: Make) -> None:
    """The batch order differs by round; where a token is noted does not: the first round's teacher is the same."""
    data = make_client(BACKBONE, 0, 5)
    masks = [data.fit(INITIAL, Randomness(seed, "c", 1), TAUGHT).trace.masks[DISTILLED] for seed in (1, 2)]
    assert batch_order(Randomness(1, "c", 1), 0, 4) != batch_order(Randomness(2, "c", 1), 0, 4)
    assert torch.equal(*masks)
    assert masks[0].shape == (1, sum(e.tokens for e in data.train))


def test_a_teacher_is_computed_once_a_round(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs over two batches: four passes of the student, two of its frozen teacher."""
    teacher, passes = noisy_adapter(BACKBONE), []
    run = BACKBONE.target_hidden
    first = next(iter(teacher))

    def counted(prefixes: Any, adapter: Adapter) -> torch.Tensor:
        passes.append("teacher" if torch.equal(adapter[first], teacher[first]) else "student")
        return run(prefixes, adapter)

    data = make_client(BACKBONE, 0, 5, local_epochs=2)
    monkeypatch.setattr(BACKBONE, "target_hidden", counted)
    data.fit(INITIAL, Randomness(1, "a", 1), TAUGHT.with_teacher(teacher))
    assert (passes.count("student"), passes.count("teacher")) == (4, 2)


def test_a_last_partial_batch_of_under_four_joins_its_neighbour(make_client: Make) -> None:
    """Five of six examples are trained on, in batches of 2: 2 and 3."""
    assert make_client(BACKBONE, 0, 6).fit(INITIAL, Randomness(1, "a", 1)).trace.steps == 2


def test_no_weight_decay_on_layer_norm(make_client: Make) -> None:
    """With a learning rate that only decay could show: gains of 1 stay near 1, matrices shrink."""
    big = {name: t + 1.0 for name, t in INITIAL.items()}
    decayed = (
        make_client(BACKBONE, 0, 3, learning_rate=1e-3, weight_decay=100.0).fit(big, Randomness(1, "a", 1)).adapter
    )
    for name, tensor in decayed.items():
        ratio = (tensor.sum() / big[name].sum()).item()
        assert (ratio > 0.99) == (".norm." in name), name


def test_validation_loss_is_a_mean_over_tokens(make_client: Make) -> None:
    """Not over examples: two of unlike length, each also alone."""
    made = make_client(BACKBONE, 0, 4)

    def validated(*entries: Entry) -> float:
        return LocalClientData([], entries, BACKBONE, made._load, made._training).validation_loss(INITIAL)

    one, other = made.train[:2]
    assert one.tokens != other.tokens
    total = validated(one) * one.tokens + validated(other) * other.tokens
    assert validated(one, other) == pytest.approx(total / (one.tokens + other.tokens), rel=1e-5)


def test_the_gradient_of_all_data_does_not_depend_on_the_batches(make_client: Make) -> None:
    adapter = noisy_adapter(BACKBONE)
    whole, parts = (make_client(BACKBONE, 0, 6, batch_size=size).gradient(adapter) for size in (5, 2))
    assert all(torch.allclose(whole[name], parts[name], rtol=1e-4, atol=1e-7) for name in whole)
    assert any(bool(tensor.abs().sum() > 0) for tensor in whole.values())


def test_the_controls_distil_as_many_tokens_but_other_ones(make_client: Make) -> None:
    data = make_client(BACKBONE, 0, 6)

    def distilled(select: Any) -> torch.Tensor:
        return data.fit(INITIAL, Randomness(1, "a", 1), replace(TAUGHT, select=select)).trace.masks[DISTILLED]

    sure, unsure, drawn = distilled("entropy"), distilled("inverse"), distilled("random")
    assert 0 < int(sure.sum()) < sure.numel()
    assert torch.equal(unsure, ~sure)
    assert int(drawn.sum()) == int(sure.sum())
    assert not torch.equal(drawn, sure)
    assert torch.equal(drawn, distilled("random"))


def test_a_quantile_distils_that_share(make_client: Make) -> None:
    data = make_client(BACKBONE, 0, 6)
    how = Distillation(Threshold(quantile=0.7), 0.2).with_teacher(INITIAL)
    trace = data.fit(INITIAL, Randomness(1, "a", 1), how).trace
    assert float(trace.masks[DISTILLED].float().mean()) == pytest.approx(0.7, abs=0.02)
    assert trace.figures["share_distilled"] == float(trace.masks[DISTILLED].float().mean())
    assert 0 < trace.figures["tau"] < math.log(BACKBONE.vocabulary)


def test_moments_that_are_put_back_go_on_where_they_stopped(make_client: Make) -> None:
    """One example, so that the order of batches does not matter: two epochs of one optimizer = two rounds of one."""
    once, twice = make_client(BACKBONE, 0, 2), make_client(BACKBONE, 0, 2, local_epochs=2)
    first = once.fit(INITIAL, Randomness(1, "a", 1), moments={})
    second = once.fit(first.adapter, Randomness(1, "a", 2), moments=first.moments)
    assert same(second.adapter, twice.fit(INITIAL, Randomness(1, "a", 1)).adapter)
    assert not same(second.adapter, once.fit(first.adapter, Randomness(1, "a", 2)).adapter)


def test_marks_lie_in_the_order_of_the_examples_whatever_the_batches(make_client: Make) -> None:
    """Marked are pieces of letters alone; each epoch shuffles anew, each row of the mask is the same."""
    data = make_client(BACKBONE, 0, 5, local_epochs=2)

    def letters(pieces: Sequence[str]) -> list[bool]:
        return [piece.strip().isalpha() for piece in pieces]

    how = Distillation(EVERY_TOKEN, 0.2, mark=letters).with_teacher(INITIAL)
    rows = data.fit(INITIAL, Randomness(1, "a", 1), how).trace.masks[DISTILLED]
    expected = [mark for i in range(len(data.train)) for mark in letters(data.pieces(i))]
    assert rows.tolist() == [expected, expected]
    assert 0 < sum(expected) < len(expected)


def test_the_losses_of_a_training_are_means_over_tokens(make_client: Make) -> None:
    """Hardly moved over two epochs, the student is its teacher, whose divergence is 0: what is distilled counts 0.8."""
    data = make_client(BACKBONE, 0, 5, local_epochs=2, learning_rate=1e-12, weight_decay=0.0)
    losses = torch.cat(token_cross_entropy(BACKBONE, data._load, data.train, INITIAL))
    plain = data.fit(INITIAL, Randomness(1, "a", 1)).trace
    assert (plain.figures, plain.masks) == ({}, {})
    assert plain.loss == pytest.approx(float(losses.mean()), rel=1e-5)
    taught = data.fit(INITIAL, Randomness(1, "a", 1), TAUGHT).trace
    assert taught.figures["cross_entropy"] == pytest.approx(plain.loss, rel=1e-5)
    entropies = data.entropies(INITIAL)
    assert taught.figures["teacher_entropy"] == pytest.approx(float(entropies.mean()), rel=1e-5)
    assert taught.loss == pytest.approx(float(torch.where(entropies < MIDDLE, 0.8 * losses, losses).mean()), rel=1e-4)


def test_an_objective_is_told_of_the_clients_own_examples(make_client: Make) -> None:
    data = make_client(BACKBONE, 0, 5)
    assert data.items([0, 2]) == data.train[0].tokens + data.train[2].tokens
    assert [len(data.pieces(i)) for i in range(4)] == [entry.tokens for entry in data.train]
    assert data.entropies(INITIAL).shape == (sum(entry.tokens for entry in data.train),)


class Halved(Objective):
    """Half of cross-entropy; marked are the targets with an even number."""

    def __call__(
        self, logits: Tensor, targets: Tensor, teacher_logits: Tensor | None, extras: Mapping[str, Tensor]
    ) -> ItemLosses:
        assert teacher_logits is None
        plain = CROSS_ENTROPY(logits, targets, None, extras)
        figures = {"certainty": logits.softmax(-1).amax(-1)}
        return ItemLosses(plain.loss / 2, plain.gradient / 2, figures, {"even": targets % 2 == 0})


def test_an_objective_of_ones_own_is_trained_on_and_told(make_client: Make) -> None:
    """Its figures are means, its masks shares besides; without clipping, AdamW does as with twice its gradient."""
    data = make_client(BACKBONE, 0, 5, clip_norm=1e9, weight_decay=0.0)
    ours, plain = (data.fit(INITIAL, Randomness(1, "a", 1), objective) for objective in (Halved(), CROSS_ENTROPY))
    even = torch.cat([prefix["targets"] for prefix in data._load([entry.key for entry in data.train])]) % 2 == 0
    assert torch.equal(ours.trace.masks["even"], even[None])
    assert set(ours.trace.figures) == {"share_even", "certainty"}
    assert ours.trace.figures["share_even"] == pytest.approx(float(even.float().mean()))
    assert 0 < ours.trace.figures["certainty"] < 1
    assert ours.trace.loss == pytest.approx(plain.trace.loss / 2, rel=1e-2)
    assert all(torch.allclose(ours.adapter[name], plain.adapter[name], atol=1e-3) for name in INITIAL)


class Misnamed(Halved):
    """Its figure would stand where a column of history does."""

    def __call__(
        self, logits: Tensor, targets: Tensor, teacher_logits: Tensor | None, extras: Mapping[str, Tensor]
    ) -> ItemLosses:
        found = super().__call__(logits, targets, teacher_logits, extras)
        return replace(found, figures={"steps": found.loss})


def test_a_figure_cannot_be_called_like_a_column_of_history(make_client: Make) -> None:
    with pytest.raises(QuorumError, match="'steps' is a column of history"):
        make_client(BACKBONE, 0, 3).fit(INITIAL, Randomness(1, "a", 1), Misnamed())


def test_a_sample_of_a_clients_examples_weighs_as_much_as_all_of_them(make_client: Make) -> None:
    """Two of five are drawn: 2 · 2.5 = 5."""
    made = make_client(BACKBONE, 0, 3)
    data = LocalClientData(made.train, made.val, BACKBONE, made._load, made._training, weight=2.5)
    assert (len(data.train), data.examples) == (2, 5)


def test_every_example_of_every_epoch_is_progress(make_client: Make) -> None:
    made, done = make_client(BACKBONE, 0, 6, local_epochs=2), []
    data = LocalClientData(made.train, made.val, BACKBONE, made._load, made._training, advance=done.append)
    data.fit(INITIAL, Randomness(1, "a", 1))
    assert done == [2, 3] * 2
