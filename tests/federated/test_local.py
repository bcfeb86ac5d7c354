"""A client's local training: what changes, what stops it, and what its trace has."""

import math
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from conftest import noisy_adapter
from federations import BACKBONE, INITIAL, MIDDLE, Make, same

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent
from pipeline.federated.head import per_token
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.distillation import DISTILLED, Distillation
from pipeline.federated.objectives.threshold import EVERY_TOKEN, Threshold
from pipeline.federated.randomness import Randomness
from pipeline.federated.wire import transmitted

TAUGHT = Distillation(Threshold(MIDDLE), 0.2).with_teacher(INITIAL)
"""Distils about half of the tokens from the initial adapter."""
RNG = Randomness(1, "a", 1)


def test_the_order_of_names_changes_no_bit(make_client: Make) -> None:
    """The norm that clips sums over tensors; here clipping is always active."""
    backwards = dict(reversed(noisy_adapter(BACKBONE).items()))
    data = make_client(BACKBONE, 0, 5, clip_norm=1e-3)
    assert same(data.fit(backwards, RNG).adapter, data.fit(noisy_adapter(BACKBONE), RNG).adapter)
    assert list(transmitted(Sent(backwards))[0].adapter) == sorted(backwards)


def test_a_loss_or_gradient_that_is_not_finite_is_an_error(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {name: torch.full_like(t, torch.nan) for name, t in INITIAL.items()}
    with pytest.raises(QuorumError, match="round 4, client a, step 1: the loss is nan"):
        make_client(BACKBONE, 0, 3).fit(broken, Randomness(1, "a", 4))
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(float("inf")))
    with pytest.raises(QuorumError, match="the norm of the gradient is inf"):
        make_client(BACKBONE, 0, 3).fit(INITIAL, RNG)


def test_training_changes_every_tensor_and_not_its_start(make_client: Make) -> None:
    before = {name: t.clone() for name, t in INITIAL.items()}
    trained = make_client(BACKBONE, 0, 5).fit(INITIAL, RNG).adapter
    assert same(before, INITIAL)
    assert all(not torch.equal(trained[name], INITIAL[name]) for name in INITIAL)


def test_a_pull_is_added_to_the_gradient(make_client: Make) -> None:
    """One step of SGD at the rate 0.01, not clipped, pulled by 3."""
    data = make_client(BACKBONE, 0, 5, optimizer="sgd", batch_size=8, clip_norm=1e9)
    pulled = data.fit(INITIAL, RNG, pull=lambda adapter: {name: torch.full_like(w, 3.0) for name, w in adapter.items()})
    for name, w in data.fit(INITIAL, RNG).adapter.items():
        torch.testing.assert_close(pulled.adapter[name], w - 0.03, atol=1e-6, rtol=0)


def test_a_teacher_is_computed_once_a_round(make_client: Make) -> None:
    """Two epochs over two batches: four passes of the student, two of its frozen teacher."""
    teacher, data = noisy_adapter(BACKBONE), make_client(BACKBONE, 0, 5, local_epochs=2)
    with patch.object(BACKBONE, "target_hidden", wraps=BACKBONE.target_hidden) as passes:
        data.fit(INITIAL, RNG, TAUGHT.with_teacher(teacher))
    assert sorted(same(call.args[1], teacher) for call in passes.call_args_list) == [False] * 4 + [True] * 2


def test_validation_loss_is_a_mean_over_tokens(make_client: Make) -> None:
    """Not over examples: two of unlike length, each also alone."""
    data = make_client(BACKBONE, 0, 4)
    one, other = data.train[:2]
    clients = (LocalClientData([], own, BACKBONE, data._load, data._training) for own in ([one], [other], [one, other]))
    first, second, both = (client.validation_loss(INITIAL) for client in clients)
    assert one.tokens != other.tokens
    total = first * one.tokens + second * other.tokens
    assert both == pytest.approx(total / (one.tokens + other.tokens), rel=1e-5)


def test_the_gradient_of_all_examples_does_not_depend_on_the_batches(make_client: Make) -> None:
    adapter = noisy_adapter(BACKBONE)
    once, parts = (make_client(BACKBONE, 0, 6, batch_size=size).gradient(adapter) for size in (5, 2))
    assert all(torch.allclose(once[name], parts[name], rtol=1e-4, atol=1e-7) for name in once)
    assert any(bool(tensor.abs().sum() > 0) for tensor in once.values())


def test_the_controls_distil_as_many_tokens_but_other_ones(make_client: Make) -> None:
    data, selects = make_client(BACKBONE, 0, 6), ("entropy", "inverse", "random", "random")
    traces = (data.fit(INITIAL, RNG, replace(TAUGHT, select=select)).trace for select in selects)
    sure, unsure, drawn, again = (trace.masks[DISTILLED] for trace in traces)
    assert 0 < int(sure.sum()) < sure.numel()
    assert torch.equal(unsure, ~sure)
    assert int(drawn.sum()) == int(sure.sum())
    assert not torch.equal(drawn, sure)
    assert torch.equal(drawn, again)


def test_a_quantile_distils_that_share_of_the_tokens(make_client: Make) -> None:
    how = replace(TAUGHT, threshold=Threshold(quantile=0.7))
    trace = make_client(BACKBONE, 0, 6).fit(INITIAL, RNG, how).trace
    assert trace.figures["share_distilled"] == float(trace.masks[DISTILLED].float().mean())
    assert trace.figures["share_distilled"] == pytest.approx(0.7, abs=0.02)
    assert 0 < trace.figures["tau"] < math.log(BACKBONE.vocabulary)


def test_restored_moments_continue_the_optimizer(make_client: Make) -> None:
    """One example, so that the order does not matter: two epochs of one optimizer are two rounds of one."""
    once, twice = make_client(BACKBONE, 0, 2), make_client(BACKBONE, 0, 2, local_epochs=2)
    first = once.fit(INITIAL, RNG, moments={})
    second = once.fit(first.adapter, Randomness(1, "a", 2), moments=first.moments)
    assert same(second.adapter, twice.fit(INITIAL, RNG).adapter)
    assert not same(second.adapter, once.fit(first.adapter, Randomness(1, "a", 2)).adapter)


def test_a_mask_is_in_the_order_of_the_examples(make_client: Make) -> None:
    """Pieces of letters alone are marked. Each epoch has another order of batches, and the same row of the mask."""
    data = make_client(BACKBONE, 0, 5, local_epochs=2)

    def letters(pieces: Sequence[str]) -> list[bool]:
        return [piece.strip().isalpha() for piece in pieces]

    how = Distillation(EVERY_TOKEN, 0.2, mark=letters).with_teacher(INITIAL)
    rows = data.fit(INITIAL, RNG, how).trace.masks[DISTILLED]
    expected = [mark for i in range(len(data.train)) for mark in letters(data.pieces(i))]
    assert rows.tolist() == [expected, expected]
    assert 0 < sum(expected) < len(expected)


def test_the_losses_of_a_training_are_means_over_tokens(make_client: Make) -> None:
    """Hardly moved over two epochs, the student is its teacher, whose divergence is 0: what is distilled counts 0.8."""
    data = make_client(BACKBONE, 0, 5, local_epochs=2, learning_rate=1e-12, weight_decay=0.0)
    losses = torch.cat(per_token(BACKBONE, data._load, data.train, INITIAL))
    plain = data.fit(INITIAL, RNG).trace
    assert (plain.figures, plain.masks) == ({}, {})
    assert plain.loss == pytest.approx(float(losses.mean()), rel=1e-5)
    taught = data.fit(INITIAL, RNG, TAUGHT).trace
    assert taught.figures["cross_entropy"] == pytest.approx(plain.loss, rel=1e-5)
    entropies = data.entropies(INITIAL)
    assert taught.figures["teacher_entropy"] == pytest.approx(float(entropies.mean()), rel=1e-5)
    assert taught.loss == pytest.approx(float(torch.where(entropies < MIDDLE, 0.8 * losses, losses).mean()), rel=1e-4)


def test_a_sample_of_examples_weighs_as_all_of_them_and_every_batch_is_progress(make_client: Make) -> None:
    """Five examples, each for 2.5: 12.5, rounded to 12. Two epochs of batches of 2 and 3."""
    made, done = make_client(BACKBONE, 0, 6, local_epochs=2), []
    data = LocalClientData(made.train, made.val, BACKBONE, made._load, made._training, done.append, weight=2.5)
    data.fit(INITIAL, RNG)
    assert (len(data.train), data.examples, done) == (5, 12, [2, 3] * 2)
