"""Federated learning: Eq. 2 by hand, and the identities between methods, bit for bit unless said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import make_backbone, noisy_adapter

from pipeline.errors import QuorumError
from pipeline.federated import centralized, fedavg, fedkd, fedselectkd, single
from pipeline.federated.algorithm import Algorithm, Randomness, weighted_average
from pipeline.federated.local import StoredClientData, batch_order
from pipeline.federated.loop import POOLED, Progress, run_rounds, start
from pipeline.federated.wire import send
from pipeline.model.adapter import Adapter, init_adapter

Make = Callable[..., StoredClientData]
BACKBONE = make_backbone("llama")
INITIAL = init_adapter(BACKBONE.adapted_layers, BACKBONE.width, 8, seed=3)

MIDDLE = 4.92
"""About the median of the tiny teacher's entropies, in nats: some tokens are distilled, some are not."""

SINGLE = single.build(single.Hyperparameters())
CENTRALIZED = centralized.build(centralized.Hyperparameters())
FEDAVG = fedavg.build(fedavg.Hyperparameters())


def select(tau: float, weight: float = 0.2, local_start: Any = "own") -> Algorithm:
    return fedselectkd.build(fedselectkd.Hyperparameters(tau=tau, weight=weight, local_start=local_start))


def kd(weight: float = 0.2, local_start: Any = "own") -> Algorithm:
    return fedkd.build(fedkd.Hyperparameters(weight=weight, local_start=local_start))


def train(algorithm: Algorithm, clients: dict[str, StoredClientData], rounds: int = 2) -> Progress:
    trained = {POOLED: clients["pooled"]} if algorithm.pooled else clients
    evaluated = {name: data for name, data in clients.items() if name != POOLED}
    return run_rounds(
        algorithm,
        trained,
        evaluated,
        start(algorithm, trained, INITIAL),
        rounds=rounds,
        patience=3,
        seed=5,
        on_round=lambda progress: None,
    )


@pytest.fixture
def clients(make_client: Make) -> dict[str, StoredClientData]:
    return {"Academic": make_client(BACKBONE, 0, 4), "Committee": make_client(BACKBONE, 10, 6)}


def same(a: Adapter, b: Adapter) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def locals_of(progress: Progress) -> dict[str, Adapter]:
    return {name: state.adapter for name, state in progress.clients.items()}


def same_locals(a: Progress, b: Progress) -> bool:
    return all(same(adapter, locals_of(b)[name]) for name, adapter in locals_of(a).items())


def test_the_order_of_names_changes_no_bit(make_client: Make) -> None:
    """The norm that clips sums over tensors; here clipping is always active."""
    backwards = dict(reversed(noisy_adapter(BACKBONE).items()))
    results = [
        make_client(BACKBONE, 0, 5, clip_norm=1e-3).fit(adapter, Randomness(1, "a", 1))[0]
        for adapter in (backwards, noisy_adapter(BACKBONE))
    ]
    assert same(*results)
    assert list(send(backwards)[0]) == sorted(backwards)


def test_a_gradient_that_is_not_finite_stops_the_run(make_client: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(float("inf")))
    with pytest.raises(QuorumError, match="the norm of the gradient is inf"):
        make_client(BACKBONE, 0, 3).fit(INITIAL, Randomness(1, "a", 1))


def test_averaging_weighs_by_examples() -> None:
    """218, 284 and 593 examples, weights 1, 2 and 3: (218 + 2·284 + 3·593) / 1095 = 2565/1095 = 2.342466."""
    average = weighted_average([{"w": torch.tensor([float(i)])} for i in (1, 2, 3)], [218, 284, 593])
    assert average["w"].item() == pytest.approx(2565 / 1095)
    assert average["w"].dtype == torch.float32


def test_one_adapter_averages_to_itself_bit_for_bit() -> None:
    adapter = noisy_adapter(BACKBONE)
    assert same(weighted_average([adapter], [7]), adapter)


def test_training_moves_every_tensor(clients: dict[str, StoredClientData]) -> None:
    moved = locals_of(train(SINGLE, clients))["Academic"]
    assert all(not torch.equal(moved[name], INITIAL[name]) for name in INITIAL)


def test_training_does_not_touch_its_start(clients: dict[str, StoredClientData]) -> None:
    before = {name: t.clone() for name, t in INITIAL.items()}
    train(FEDAVG, clients, rounds=1)
    assert same(before, INITIAL)


def test_selectkd_without_a_sure_teacher_is_single(clients: dict[str, StoredClientData]) -> None:
    assert same_locals(train(select(tau=0.0), clients), train(SINGLE, clients))


def test_fedkd_without_weight_is_single(clients: dict[str, StoredClientData]) -> None:
    assert same_locals(train(kd(weight=0.0), clients), train(SINGLE, clients))


def test_selectkd_from_the_server_without_a_sure_teacher_follows_fedavg(clients: dict[str, StoredClientData]) -> None:
    ours, average = train(select(tau=0.0, local_start="server"), clients), train(FEDAVG, clients)
    assert same(ours.server.adapter, average.server.adapter)
    assert same_locals(ours, average)


@pytest.mark.parametrize("local_start", ["own", "server"])
def test_selectkd_above_the_largest_entropy_is_fedkd(clients: dict[str, StoredClientData], local_start: str) -> None:
    above = math.log(BACKBONE.vocabulary) + 1e-3
    assert same_locals(
        train(select(above, local_start=local_start), clients), train(kd(local_start=local_start), clients)
    )


def test_fedavg_with_one_client_is_single(clients: dict[str, StoredClientData]) -> None:
    alone = {"Academic": clients["Academic"]}
    assert same(train(FEDAVG, alone).server.adapter, locals_of(train(SINGLE, alone))["Academic"])


def test_methods_that_should_differ_do(clients: dict[str, StoredClientData]) -> None:
    """Else the identities above would hold for nothing."""
    runs = [train(a, clients) for a in (SINGLE, FEDAVG, kd(), select(tau=MIDDLE))]
    adapters = [locals_of(run)["Academic"] for run in runs]
    assert not any(same(adapters[i], adapters[j]) for i in range(4) for j in range(i))


def test_every_method_repeats_itself(clients: dict[str, StoredClientData]) -> None:
    for algorithm in (SINGLE, FEDAVG, select(MIDDLE)):
        assert same_locals(train(algorithm, clients), train(algorithm, clients))


def test_centralized_trains_one_model_on_all_and_evaluates_each_client(make_client: Make) -> None:
    clients = {"Academic": make_client(BACKBONE, 0, 4), "pooled": make_client(BACKBONE, 0, 8)}
    progress = train(CENTRALIZED, clients)
    assert list(progress.clients) == [POOLED]
    assert list(progress.best["local"]) == ["Academic"]
    assert progress.history[0]["steps"] == math.ceil(7 / 2)


def test_nothing_travels_without_a_server(clients: dict[str, StoredClientData]) -> None:
    assert {row["bytes_up"] + row["bytes_down"] for row in train(SINGLE, clients).history} == {0}
    size = send(INITIAL)[1]
    assert {(row["bytes_up"], row["bytes_down"]) for row in train(FEDAVG, clients).history} == {(size, size)}
    assert size > 4 * sum(t.numel() for t in INITIAL.values())


def test_what_arrives_is_what_was_sent() -> None:
    assert same(send(noisy_adapter(BACKBONE))[0], noisy_adapter(BACKBONE))


def test_the_teacher_is_what_the_client_was_sent(clients: dict[str, StoredClientData]) -> None:
    progress = train(select(MIDDLE), clients, rounds=1)
    assert same(progress.best["local"]["Academic"].teacher, INITIAL)


def test_history_says_what_happened(clients: dict[str, StoredClientData]) -> None:
    rows = train(select(MIDDLE), clients).history
    assert [(r["round"], r["client"]) for r in rows] == [
        (1, "Academic"),
        (1, "Committee"),
        (2, "Academic"),
        (2, "Committee"),
    ]
    assert all(0 <= r["share_distilled"] <= 1 and 0 < r["teacher_entropy"] < math.log(260) for r in rows)
    assert rows[2]["teacher_validation_loss"] == rows[0]["server_validation_loss"]
    assert train(FEDAVG, clients).history[0]["share_distilled"] is None


def test_the_share_distilled_grows_with_tau(clients: dict[str, StoredClientData]) -> None:
    shares = [train(select(tau), clients, rounds=1).history[0]["share_distilled"] for tau in (0.0, MIDDLE, 99.0)]
    assert shares[0] == 0.0
    assert 0 < shares[1] < 1
    assert shares[2] == 1.0


def test_distilled_bits_lie_in_the_order_of_the_examples(make_client: Make) -> None:
    """The batch order differs by round; where a token is noted does not: the first round's teacher is the same."""
    data = make_client(BACKBONE, 0, 5)
    masks = [
        data.fit(INITIAL, Randomness(seed, "c", 1), teacher=INITIAL, how=fedselectkd.Distillation(MIDDLE, 0.2))[
            1
        ].distilled
        for seed in (1, 2)
    ]
    assert batch_order(Randomness(1, "c", 1), 0, 4) != batch_order(Randomness(2, "c", 1), 0, 4)
    assert torch.equal(*masks)
    assert masks[0].shape == (1, sum(e.tokens for e in data.train))


def test_batch_order_depends_on_seed_client_round_and_epoch_alone() -> None:
    base = batch_order(Randomness(1, "a", 1), 0, 50)
    assert base == batch_order(Randomness(1, "a", 1), 0, 50)
    others = [
        (Randomness(2, "a", 1), 0),
        (Randomness(1, "b", 1), 0),
        (Randomness(1, "a", 2), 0),
        (Randomness(1, "a", 1), 1),
    ]
    assert all(batch_order(rng, epoch, 50) != base for rng, epoch in others)
    assert sorted(base) == list(range(50))


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
    data.fit(INITIAL, Randomness(1, "a", 1), teacher=teacher, how=fedselectkd.Distillation(MIDDLE, 0.2))
    assert (passes.count("student"), passes.count("teacher")) == (4, 2)


def test_the_last_partial_batch_is_kept(make_client: Make) -> None:
    assert make_client(BACKBONE, 0, 6).fit(INITIAL, Randomness(1, "a", 1))[1].steps == 3


def test_no_weight_decay_on_layer_norm(make_client: Make) -> None:
    """With a learning rate that only decay could show: gains of 1 stay near 1, matrices shrink."""
    big = {name: t + 1.0 for name, t in INITIAL.items()}
    decayed = make_client(BACKBONE, 0, 3, learning_rate=1e-3, weight_decay=100.0).fit(big, Randomness(1, "a", 1))[0]
    for name, tensor in decayed.items():
        ratio = (tensor.sum() / big[name].sum()).item()
        assert (ratio > 0.99) == (".norm." in name), name


def test_a_loss_that_is_not_finite_stops_the_run(make_client: Make) -> None:
    broken = {name: torch.full_like(t, torch.nan) for name, t in INITIAL.items()}
    with pytest.raises(QuorumError, match="round 4, client a, step 1: the loss is nan"):
        make_client(BACKBONE, 0, 3).fit(broken, Randomness(1, "a", 4))


def test_training_stops_when_nobody_improves(make_client: Make) -> None:
    """A learning rate of almost nothing: round 1 improves on nothing before it, the next three on round 1 never."""
    frozen = {"Academic": make_client(BACKBONE, 0, 3, learning_rate=1e-12, weight_decay=0.0)}
    assert train(SINGLE, frozen, rounds=10).round <= 5
