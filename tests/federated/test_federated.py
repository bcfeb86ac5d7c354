"""Rounds: who trains, what travels, what is noted and kept."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch
from conftest import noisy_adapter
from federations import (
    BACKBONE,
    CENTRALIZED,
    FEDAVG,
    INITIAL,
    MIDDLE,
    SINGLE,
    Make,
    kd,
    locals_of,
    same,
    same_locals,
    select,
    three,
    train,
)

from pipeline.federated.algorithm import Algorithm, weighted_average
from pipeline.federated.algorithms import scaffold
from pipeline.federated.history import Round
from pipeline.federated.local import StoredClientData
from pipeline.federated.loop import POOLED
from pipeline.federated.wire import send
from pipeline.stages.train import HISTORY


def test_averaging_weighs_by_examples() -> None:
    """218, 284 and 593 examples, weights 1, 2 and 3: (218 + 2·284 + 3·593) / 1095 = 2565/1095 = 2.342466."""
    average = weighted_average([{"w": torch.tensor([float(i)])} for i in (1, 2, 3)], [218, 284, 593])
    assert average["w"].item() == pytest.approx(2565 / 1095)
    assert average["w"].dtype == torch.float32


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


def test_history_has_the_columns_that_are_read() -> None:
    assert tuple(known.name for known in fields(Round) if known.name != "seed") == HISTORY


def test_training_stops_when_nobody_improves(make_client: Make) -> None:
    """A learning rate of almost nothing: round 1 improves on nothing before it, the next three on round 1 never."""
    frozen = {"Academic": make_client(BACKBONE, 0, 3, learning_rate=1e-12, weight_decay=0.0)}
    assert train(SINGLE, frozen, rounds=10).round == 4


def test_scaffolds_variates_double_the_bytes(clients: dict[str, StoredClientData]) -> None:
    ours = train(scaffold.build(scaffold.Hyperparameters()), clients, rounds=1).history[0]
    average = train(FEDAVG, clients, rounds=1).history[0]
    assert ours["bytes_up"] == pytest.approx(2 * average["bytes_up"], rel=0.1)
    assert ours["bytes_down"] == pytest.approx(2 * average["bytes_down"], rel=0.1)


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
