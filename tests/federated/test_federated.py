"""Rounds: who trains, what travels, what is noted and kept."""

from __future__ import annotations

import math

import pytest
import torch
from federations import (
    BACKBONE,
    CENTRALIZED,
    FEDAVG,
    INITIAL,
    MIDDLE,
    SINGLE,
    Make,
    frozen,
    kd,
    locals_of,
    same,
    same_locals,
    select,
    server_of,
    three,
    train,
)

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import scaffold
from pipeline.federated.local import LocalClientData
from pipeline.federated.wire import transmitted
from pipeline.runs.training import POOLED


def test_a_training_repeats_itself(clients: dict[str, LocalClientData]) -> None:
    for algorithm in (SINGLE, FEDAVG, select(MIDDLE)):
        assert same_locals(train(algorithm, clients), train(algorithm, clients))


def test_centralized_trains_one_model_on_all_and_evaluates_each_client(make_client: Make) -> None:
    """8 examples, of which 7 are trained on: in batches of 2 and at last 3 that is 3 steps, as every row tells."""
    clients = {
        "A": make_client(BACKBONE, 0, 4),
        "B": make_client(BACKBONE, 4, 4),
        POOLED: make_client(BACKBONE, 0, 8),
    }
    run = train(CENTRALIZED, clients)
    assert list(run.private.states) == [POOLED]
    assert list(run.private.best["local"]) == ["A", "B"]
    assert [row.steps for row in run.progress.history] == [3] * 4
    losses = {row.client: row.local_validation_loss for row in run.progress.last}
    model = locals_of(run)[POOLED]
    assert losses == {name: clients[name].validation_loss(model) for name in ("A", "B")}


def test_nothing_travels_without_a_server(clients: dict[str, LocalClientData]) -> None:
    run = train(SINGLE, clients)
    assert {row.bytes_moved for row in run.progress.history} == {0}
    assert {row.server_validation_loss for row in run.progress.history} == {None}
    assert {row.sent_validation_loss for row in run.progress.history} == {None}
    assert list(run.private.best) == ["local"]


def test_an_adapter_travels_down_and_up(clients: dict[str, LocalClientData]) -> None:
    size = transmitted(INITIAL, {})[2]
    assert {(row.bytes_up, row.bytes_down) for row in train(FEDAVG, clients).progress.history} == {(size, size)}
    assert size > 4 * sum(t.numel() for t in INITIAL.values())


def test_the_best_round_remembers_what_was_sent(clients: dict[str, LocalClientData]) -> None:
    run = train(select(MIDDLE), clients, rounds=1)
    assert same(run.private.best["local"]["Academic"].sent, INITIAL)


def test_the_best_round_remembers_the_clients_adapter_of_the_round_before(clients: dict[str, LocalClientData]) -> None:
    first, second = (train(select(MIDDLE), clients, rounds=rounds) for rounds in (1, 2))
    best = second.private.best["local"]["Academic"]
    assert best.round == 2
    assert same(best.before, locals_of(first)["Academic"])
    assert same(best.sent, server_of(first))
    assert same(best.adapter, locals_of(second)["Academic"])


def test_history_has_a_row_a_client_and_round(clients: dict[str, LocalClientData]) -> None:
    rows = train(select(MIDDLE), clients).progress.history
    assert [(r.round, r.client) for r in rows] == [
        (1, "Academic"),
        (1, "Committee"),
        (2, "Academic"),
        (2, "Committee"),
    ]
    assert {r.seed for r in rows} == {5}


def test_history_has_the_losses_of_all_three_models(clients: dict[str, LocalClientData]) -> None:
    """The client's own, the server's, and the one that was sent: in round 2 the server's of round 1."""
    run = train(select(MIDDLE), clients)
    row = next(r for r in run.progress.last if r.client == "Academic")
    loss_of = clients["Academic"].validation_loss
    assert row.local_validation_loss == loss_of(locals_of(run)["Academic"])
    assert row.server_validation_loss == loss_of(server_of(run))
    assert row.sent_validation_loss == loss_of(server_of(train(select(MIDDLE), clients, rounds=1)))
    first = run.progress.history[0]
    assert first.sent_validation_loss == loss_of(INITIAL)


def test_a_methods_own_figures_stand_in_its_history(clients: dict[str, LocalClientData]) -> None:
    """Entropies of a vocabulary of V words lie between 0 and ln V."""
    for row in train(select(MIDDLE), clients).progress.history:
        assert set(row.figures) == {"share_distilled", "teacher_entropy", "cross_entropy", "tau"}
        assert 0 <= row.figures["share_distilled"] <= 1
        assert 0 < row.figures["teacher_entropy"] < math.log(BACKBONE.vocabulary)
        assert row.figures["tau"] == MIDDLE
    assert train(FEDAVG, clients).progress.history[0].figures == {}


def test_a_method_that_distils_every_token_has_no_threshold(clients: dict[str, LocalClientData]) -> None:
    figures = train(kd(), clients, rounds=1).progress.history[0].figures
    assert set(figures) == {"share_distilled", "teacher_entropy", "cross_entropy"}
    assert figures["share_distilled"] == 1.0


def test_the_share_distilled_grows_with_tau(clients: dict[str, LocalClientData]) -> None:
    shares = [
        train(select(tau), clients, rounds=1).progress.history[0].figures["share_distilled"]
        for tau in (0.0, MIDDLE, 99.0)
    ]
    assert shares[0] == 0.0
    assert 0 < shares[1] < 1
    assert shares[2] == 1.0


def test_masks_are_kept_a_round(clients: dict[str, LocalClientData]) -> None:
    run = train(select(MIDDLE), clients)
    masks = run.private.masks["Academic"]["distilled"]
    tokens = sum(entry.tokens for entry in clients["Academic"].train)
    assert {number: rows.shape for number, rows in masks.items()} == {1: (1, tokens), 2: (1, tokens)}
    shares = [r.figures["share_distilled"] for r in run.progress.history if r.client == "Academic"]
    assert [float(rows.float().mean()) for rows in masks.values()] == shares
    assert train(FEDAVG, clients).private.masks == {}


def test_least_is_each_clients_least_loss_of_the_models_that_tables_are_about(
    clients: dict[str, LocalClientData],
) -> None:
    """A training of AdaFedAvg serves two rows: the server's model, and the clients' own before aggregation."""
    for algorithm, owners in ((FEDAVG, ("local", "server")), (select(MIDDLE), ("local",))):
        progress = train(algorithm, clients, rounds=3).progress
        assert progress.least == {
            f"{name}/{owner}": min(row.loss_of(owner) for row in progress.history if row.client == name)
            for name in clients
            for owner in owners
        }


def test_scaffolds_variates_double_the_bytes(clients: dict[str, LocalClientData]) -> None:
    ours = train(scaffold.build(scaffold.Hyperparameters()), clients, rounds=1).progress.history[0]
    average = train(FEDAVG, clients, rounds=1).progress.history[0]
    assert ours.bytes_up == pytest.approx(2 * average.bytes_up, rel=0.1)
    assert ours.bytes_down == pytest.approx(2 * average.bytes_down, rel=0.1)


def test_a_client_that_is_not_drawn_keeps_its_adapter_and_sends_nothing(make_client: Make) -> None:
    run = train(select(MIDDLE), three(make_client), rounds=1, clients_per_round=2)
    (idle,) = [row for row in run.progress.history if row.steps == 0]
    assert idle.train_loss is None
    assert idle.cross_entropy is None
    assert idle.figures == {}
    assert idle.bytes_moved == 0
    assert idle.server_validation_loss is not None
    assert same(locals_of(run)[idle.client], INITIAL)
    assert idle.client not in run.private.masks


def test_the_draw_is_the_same_for_all_methods(make_client: Make) -> None:
    def who(algorithm: Algorithm) -> list[tuple[int, str]]:
        rows = train(algorithm, three(make_client), rounds=4, clients_per_round=2).progress.history
        return [(row.round, row.client) for row in rows if row.steps]

    found = who(FEDAVG)
    assert found == who(kd())
    assert len(found) == 8
    assert len({frozenset(c for n, c in found if n == number) for number in range(1, 5)}) > 1


def test_a_client_that_is_still_to_come_changes_nothing(make_client: Make) -> None:
    late = train(FEDAVG, three(make_client), rounds=2, joins={"C": 3})
    assert {row.client for row in late.progress.history} == {"A", "B"}
    both = {name: data for name, data in three(make_client).items() if name != "C"}
    assert same(server_of(late), server_of(train(FEDAVG, both, rounds=2)))


def test_a_late_client_comes_in_with_the_servers_adapter(make_client: Make) -> None:
    """It begins with what A and B have averaged by then; a client that hardly learns still holds it afterwards."""
    clients = three(make_client) | {"C": frozen(make_client, 20)}
    both = {name: data for name, data in clients.items() if name != "C"}
    run = train(select(MIDDLE), clients, rounds=3, joins={"C": 3})
    (row,) = [row for row in run.progress.history if row.client == "C"]
    server = server_of(train(select(MIDDLE), both, rounds=2))
    assert row.round == 3
    assert row.sent_validation_loss == clients["C"].validation_loss(server)
    assert same(run.private.best["local"]["C"].sent, server)
    assert same(run.private.best["local"]["C"].before, server)
    held = locals_of(run)["C"]
    assert all(torch.allclose(held[name], server[name], atol=1e-9) for name in server)


def test_training_stops_when_nobody_improves(make_client: Make) -> None:
    """A learning rate of almost nothing: round 1 improves on nothing before it, the next three on round 1 never."""
    assert train(SINGLE, {"A": frozen(make_client, 0)}, rounds=10).progress.round == 4


def test_nobody_stops_before_the_last_client_has_come(make_client: Make) -> None:
    """B comes in round 9, which is its first and so its best; three rounds later it is over."""
    clients = {"A": frozen(make_client, 0), "B": frozen(make_client, 9)}
    assert train(SINGLE, clients, rounds=20, joins={"B": 9}).progress.round == 12
