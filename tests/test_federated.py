"""Federated learning: Eq. 2 by hand, and the identities between methods, bit for bit unless said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import torch
from conftest import make_backbone, noisy_adapter

from pipeline.errors import QuorumError
from pipeline.federated import (
    centralized,
    ditto,
    fedavg,
    fedavgm,
    fedhardkd,
    fedkd,
    fednova,
    fedopt,
    fedprox,
    fedselectkd,
    scaffold,
    single,
)
from pipeline.federated.algorithm import Algorithm, Randomness, weighted_average
from pipeline.federated.local import StoredClientData, batch_order
from pipeline.federated.loop import POOLED, Progress, Schedule, run_rounds, start
from pipeline.federated.wire import send
from pipeline.history import Round
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.entry import Entry
from pipeline.stages.train import HISTORY

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


def train(algorithm: Algorithm, clients: dict[str, StoredClientData], rounds: int = 2, **schedule: Any) -> Progress:
    trained = {POOLED: clients["pooled"]} if algorithm.pooled else clients
    evaluated = {name: data for name, data in clients.items() if name != POOLED}
    return run_rounds(
        algorithm,
        trained,
        evaluated,
        start(algorithm, trained, INITIAL),
        Schedule(rounds, patience=3, **schedule),
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


def test_a_training_repeats_itself(clients: dict[str, StoredClientData]) -> None:
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
    server = train(select(MIDDLE), clients, rounds=1).server.adapter
    assert rows[2]["teacher_validation_loss"] == clients["Academic"].validation_loss(server)
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


def test_validation_loss_is_a_mean_over_tokens(make_client: Make) -> None:
    """Not over examples: two of unlike length, each also alone."""
    made = make_client(BACKBONE, 0, 4)

    def validated(*entries: Entry) -> float:
        return StoredClientData([], entries, BACKBONE, made._load, made._training).validation_loss(INITIAL)

    one, other = made.train[:2]
    assert one.tokens != other.tokens
    total = validated(one) * one.tokens + validated(other) * other.tokens
    assert validated(one, other) == pytest.approx(total / (one.tokens + other.tokens), rel=1e-5)


def test_history_has_the_columns_that_are_read() -> None:
    assert tuple(known.name for known in fields(Round) if known.name != "seed") == HISTORY


def test_training_stops_when_nobody_improves(make_client: Make) -> None:
    """A learning rate of almost nothing: round 1 improves on nothing before it, the next three on round 1 never."""
    frozen = {"Academic": make_client(BACKBONE, 0, 3, learning_rate=1e-12, weight_decay=0.0)}
    assert train(SINGLE, frozen, rounds=10).round == 4


def close(a: Adapter, b: Adapter) -> bool:
    return a.keys() == b.keys() and all(torch.allclose(a[name], b[name], rtol=0, atol=1e-6) for name in a)


def test_fedprox_without_weight_is_fedavg(clients: dict[str, StoredClientData]) -> None:
    ours = train(fedprox.build(fedprox.Hyperparameters(mu=0.0)), clients)
    assert same(ours.server.adapter, train(FEDAVG, clients).server.adapter)


def test_a_heavy_proximal_term_holds_the_client_near_the_server(clients: dict[str, StoredClientData]) -> None:
    """Else the identity above would hold for nothing. Clipping is off: it would scale the pull away."""

    def moved(mu: float) -> float:
        adapter = train(fedprox.build(fedprox.Hyperparameters(mu=mu)), clients).server.adapter
        return sum(float((adapter[name] - INITIAL[name]).abs().sum()) for name in INITIAL)

    assert moved(100.0) < 0.9 * moved(0.0)


def test_fedopt_by_plain_steps_and_fedavgm_without_momentum_are_fedavg(clients: dict[str, StoredClientData]) -> None:
    plain = fedopt.Hyperparameters(server_optimizer="momentum", server_learning_rate=1.0, server_momentum=0.0)
    average = train(FEDAVG, clients).server.adapter
    for algorithm in (fedopt.build(plain), fedavgm.build(fedavgm.Hyperparameters(server_momentum=0.0))):
        assert close(train(algorithm, clients).server.adapter, average)


def test_fednova_with_equal_steps_is_fedavg(make_client: Make) -> None:
    """3 and 4 training examples in batches of 2: two steps each."""
    clients = {"A": make_client(BACKBONE, 0, 4), "B": make_client(BACKBONE, 10, 5)}
    ours, average = train(fednova.build(fednova.Hyperparameters()), clients), train(FEDAVG, clients)
    assert {row["steps"] for row in ours.history} == {2}
    assert close(ours.server.adapter, average.server.adapter)


def test_dittos_server_is_fedavgs_and_without_weight_its_clients_are_single(
    clients: dict[str, StoredClientData],
) -> None:
    free = train(ditto.build(ditto.Hyperparameters(mu=0.0)), clients)
    assert same(free.server.adapter, train(FEDAVG, clients).server.adapter)
    assert same_locals(free, train(SINGLE, clients))


def test_scaffold_is_fedavg_in_its_first_round_and_not_after(clients: dict[str, StoredClientData]) -> None:
    """All variates begin at zero."""
    algorithm = scaffold.build(scaffold.Hyperparameters())
    first, second = train(algorithm, clients, rounds=1), train(algorithm, clients)
    assert same(first.server.adapter, train(FEDAVG, clients, rounds=1).server.adapter)
    assert not same(second.server.adapter, train(FEDAVG, clients).server.adapter)


def test_scaffolds_variates_double_the_bytes(clients: dict[str, StoredClientData]) -> None:
    ours = train(scaffold.build(scaffold.Hyperparameters()), clients, rounds=1).history[0]
    average = train(FEDAVG, clients, rounds=1).history[0]
    assert ours["bytes_up"] == pytest.approx(2 * average["bytes_up"], rel=0.1)
    assert ours["bytes_down"] == pytest.approx(2 * average["bytes_down"], rel=0.1)


def test_the_gradient_of_all_data_does_not_depend_on_the_batches(make_client: Make) -> None:
    adapter = noisy_adapter(BACKBONE)
    whole, parts = (make_client(BACKBONE, 0, 6, batch_size=size).gradient(adapter) for size in (5, 2))
    assert all(torch.allclose(whole[name], parts[name], rtol=1e-4, atol=1e-7) for name in whole)
    assert any(bool(tensor.abs().sum() > 0) for tensor in whole.values())


def hard(weight: float = 0.2) -> Algorithm:
    return fedhardkd.build(fedhardkd.Hyperparameters(weight=weight))


def marked(data: StoredClientData, value: bool) -> StoredClientData:
    data._marks = [torch.full((entry.tokens,), value) for entry in data.train]
    return data


def test_hard_distillation_of_everything_is_fedkd_and_of_nothing_single(make_client: Make) -> None:
    def clients(value: bool) -> dict[str, StoredClientData]:
        return {"A": marked(make_client(BACKBONE, 0, 4), value), "B": marked(make_client(BACKBONE, 10, 6), value)}

    assert same_locals(train(hard(), clients(True)), train(kd(), clients(True)))
    assert same_locals(train(hard(), clients(False)), train(SINGLE, clients(False)))


def test_the_controls_distil_as_many_tokens_but_other_ones(make_client: Make) -> None:
    data = make_client(BACKBONE, 0, 6)

    def distilled(select: Any) -> torch.Tensor:
        how = fedselectkd.Distillation(MIDDLE, 0.2, select)
        return data.fit(INITIAL, Randomness(1, "a", 1), teacher=INITIAL, how=how).trace.distilled

    sure, unsure, drawn = distilled("entropy"), distilled("inverse"), distilled("random")
    assert 0 < int(sure.sum()) < sure.numel()
    assert torch.equal(unsure, ~sure)
    assert int(drawn.sum()) == int(sure.sum())
    assert not torch.equal(drawn, sure)
    assert torch.equal(drawn, distilled("random"))


def test_a_quantile_distils_that_share(make_client: Make) -> None:
    data = make_client(BACKBONE, 0, 6)
    how = fedselectkd.Distillation(math.nan, 0.2, quantile=0.7)
    trace = data.fit(INITIAL, Randomness(1, "a", 1), teacher=INITIAL, how=how).trace
    assert float(trace.distilled.float().mean()) == pytest.approx(0.7, abs=0.02)
    assert 0 < trace.tau < math.log(BACKBONE.vocabulary)


def test_kept_moments_change_the_second_round_only(clients: dict[str, StoredClientData]) -> None:
    keep = fedavg.build(fedavg.Hyperparameters(client_optimizer_state="keep"))
    assert same(train(keep, clients, 1).server.adapter, train(FEDAVG, clients, 1).server.adapter)
    assert not same(train(keep, clients).server.adapter, train(FEDAVG, clients).server.adapter)


def test_moments_that_are_put_back_go_on_where_they_stopped(make_client: Make) -> None:
    """One example, so that the order of batches does not matter: two epochs of one optimizer = two rounds of one."""
    once, twice = make_client(BACKBONE, 0, 2), make_client(BACKBONE, 0, 2, local_epochs=2)
    first = once.fit(INITIAL, Randomness(1, "a", 1), moments={})
    second = once.fit(first.adapter, Randomness(1, "a", 2), moments=first.moments)
    assert same(second.adapter, twice.fit(INITIAL, Randomness(1, "a", 1)).adapter)
    assert not same(second.adapter, once.fit(first.adapter, Randomness(1, "a", 2)).adapter)


def three(make_client: Make) -> dict[str, StoredClientData]:
    return {name: make_client(BACKBONE, at, 4) for at, name in ((0, "A"), (10, "B"), (20, "C"))}


def test_a_client_that_is_not_drawn_keeps_its_adapter_and_sends_nothing(make_client: Make) -> None:
    progress = train(select(MIDDLE), three(make_client), rounds=1, clients_per_round=2)
    idle = [row for row in progress.history if row["steps"] == 0]
    assert len(idle) == 1
    assert idle[0]["train_loss"] is None
    assert (idle[0]["bytes_up"], idle[0]["bytes_down"]) == (0, 0)
    assert same(locals_of(progress)[idle[0]["client"]], INITIAL)
    assert progress.distilled[idle[0]["client"]] == []


def test_the_draw_is_the_same_for_all_methods(make_client: Make) -> None:
    def who(algorithm: Algorithm) -> list[tuple[int, str]]:
        rows = train(algorithm, three(make_client), rounds=4, clients_per_round=2).history
        return [(row["round"], row["client"]) for row in rows if row["steps"]]

    assert who(FEDAVG) == who(kd())
    assert len(who(FEDAVG)) == 8
    assert len({frozenset(c for n, c in who(FEDAVG) if n == number) for number in range(1, 5)}) > 1


def test_a_late_client_comes_in_with_the_servers_adapter(make_client: Make) -> None:
    late = train(FEDAVG, three(make_client), rounds=2, joins={"C": 3})
    assert {row["client"] for row in late.history} == {"A", "B"}
    both = {name: data for name, data in three(make_client).items() if name != "C"}
    assert same(late.server.adapter, train(FEDAVG, both, rounds=2).server.adapter)
    frozen = train(select(MIDDLE), three(make_client), rounds=3, joins={"C": 3})
    assert [row["round"] for row in frozen.history if row["client"] == "C"] == [3]
    servers = train(select(MIDDLE), both, rounds=2).server.adapter
    assert same(frozen.best["local"]["C"].teacher, servers)
    still = three(make_client) | {"C": make_client(BACKBONE, 20, 3, learning_rate=1e-12, weight_decay=0.0)}
    unmoved = locals_of(train(select(MIDDLE), still, rounds=3, joins={"C": 3}))["C"]
    assert all(torch.allclose(unmoved[name], servers[name], atol=1e-9) for name in servers)


def test_nobody_stops_before_the_last_client_has_come(make_client: Make) -> None:
    frozen = {
        name: make_client(BACKBONE, at, 3, learning_rate=1e-12, weight_decay=0.0) for at, name in ((0, "A"), (9, "B"))
    }
    assert train(SINGLE, frozen, rounds=12, joins={"B": 9}).round >= 9
