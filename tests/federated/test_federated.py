"""Trainings of several rounds: who trains, what is sent, what history has, and what clients store."""

from itertools import product

import pytest
import torch
from federations import BACKBONE, FEDAVG, INITIAL, MIDDLE, Make, locals_of, same, select, server_of, three, train

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.figures import SERVER
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, select_clients
from pipeline.federated.randomness import Randomness, batch_order

SELECTIVE = select(MIDDLE)
Clients = dict[str, LocalClientData]
NAMES = [f"client {number}" for number in range(20)]


def test_a_row_has_the_losses_of_three_models(clients: Clients) -> None:
    """The client's own, the server's, and the one that was sent: in round 2 the server's of round 1."""
    first, second = (train(SELECTIVE, clients, rounds) for rounds in (1, 2))
    rows = second.progress.history
    names = ["Academic", "Committee"]
    assert [(r.round, r.client) for r in rows] == [(number, name) for number in (1, 2) for name in names]
    assert {r.seed for r in rows} == {5}
    loss_of, row = clients["Academic"].validation_loss, rows[2]
    assert rows[0].sent_validation_loss == loss_of(INITIAL)
    assert row.local_validation_loss == loss_of(locals_of(second)["Academic"])
    assert row.server_validation_loss == loss_of(server_of(second))
    assert row.sent_validation_loss == loss_of(server_of(first))


@pytest.mark.parametrize(("algorithm", "owners"), [(FEDAVG, ("local", "server")), (SELECTIVE, ("local",))])
def test_the_least_losses(clients: Clients, algorithm: Algorithm, owners: tuple[str, ...]) -> None:
    """A training of AdaFedAvg gives two rows: of the server's model, and of the clients' own before aggregation."""
    progress = train(algorithm, clients, rounds=3).progress
    for name, owner in product(clients, owners):
        losses = [row.known_loss(owner) for row in progress.history if row.client == name]
        assert progress.least[f"{name}/{owner}"] == min(losses)
    assert len(progress.least) == len(clients) * len(owners)


def test_an_unselected_client_keeps_its_adapter_and_sends_nothing(make_client: Make) -> None:
    run = train(SELECTIVE, three(make_client), rounds=1, clients_per_round=2)
    (idle,) = [row for row in run.progress.history if row.steps == 0]
    assert (idle.train_loss, idle.bytes_moved) == (None, 0)
    assert all(name.startswith(SERVER) for name in idle.figures)
    assert idle.server_validation_loss is not None
    assert same(locals_of(run)[idle.client], INITIAL)
    assert not any(key.startswith(f"{idle.client}/") for key in run.private.masks)


def test_a_late_client_joins_with_the_servers_adapter(make_client: Make) -> None:
    """It begins with the average of A and B. It hardly learns, so it still has that average afterwards."""
    clients = three(make_client) | {"C": make_client(BACKBONE, 20, 3, learning_rate=1e-12, weight_decay=0.0)}
    both = {name: data for name, data in clients.items() if name != "C"}
    run = train(SELECTIVE, clients, rounds=3, joins={"C": 3})
    (row,) = [row for row in run.progress.history if row.client == "C"]
    server = server_of(train(SELECTIVE, both, rounds=2))
    assert (row.round, row.sent_validation_loss) == (3, clients["C"].validation_loss(server))
    best = run.private.best["local"]["C"]
    assert same(best.sent, server)
    assert same(best.before, server)
    assert all(torch.allclose(tensor, server[name], atol=1e-9) for name, tensor in locals_of(run)["C"].items())


def test_clients_are_selected_by_seed_and_round_in_their_own_order() -> None:
    """All without a number or with a large one; each at some time."""
    chosen = {(s, n): select_clients(NAMES, 5, seed=s, number=n) for s in (1, 2) for n in range(1, 41)}
    assert all(len(set(own)) == 5 and own == [name for name in NAMES if name in own] for own in chosen.values())
    assert set(chosen[1, 1]) == set(select_clients(NAMES[::-1], 5, seed=1, number=1))
    assert len({tuple(chosen[s, n]) for s in (1, 2) for n in (1, 2)}) == 4
    assert {name for (seed, _), own in chosen.items() if seed == 1 for name in own} == set(NAMES)
    assert all(select_clients(NAMES, count, seed=1, number=1) == NAMES for count in (None, 20, 99))


def test_clients_are_drawn_by_their_examples() -> None:
    """One of two with 3 of 4 examples: in 2,000 rounds 1,500 times, with a standard deviation of 19."""
    rounds = [select_clients(["A", "B"], 1, 1, number, {"A": 1, "B": 3}) for number in range(2000)]
    assert abs(rounds.count(["B"]) - 1500) < 80


def test_a_client_is_present_from_the_round_in_which_it_joins() -> None:
    who = Participation(joins={"A": 1, "C": 3})
    assert [who.present("ABC", number) for number in (1, 2, 3, 4)] == [["A", "B"], ["A", "B"], [*"ABC"], [*"ABC"]]
    assert [who.joining("ABC", number) for number in (1, 2, 3, 4)] == [[], [], ["C"], []]


def test_batch_order_depends_on_seed_client_round_and_epoch_alone() -> None:
    base = batch_order(Randomness(1, "a", 1), 0, 50)
    assert sorted(base) == list(range(50))
    assert base == batch_order(Randomness(1, "a", 1), 0, 50)
    assert Randomness(1, "a", 1).number("dropout") != Randomness(1, "a", 1).number("draw")
    for rng, epoch in (((2, "a", 1), 0), ((1, "b", 1), 0), ((1, "a", 2), 0), ((1, "a", 1), 1)):
        assert batch_order(Randomness(*rng), epoch, 50) != base
