"""Trainings of several rounds: who trains, what is sent, what history has, and what clients store."""

import pytest
import torch
from federations import (
    FEDAVG,
    INITIAL,
    MIDDLE,
    Make,
    frozen,
    locals_of,
    same,
    select,
    server_of,
    three,
    train,
)  # fmt: skip

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.figures import SERVER
from pipeline.federated.local import LocalClientData
from pipeline.runs.training import Finished

SELECTIVE = select(MIDDLE)
Clients = dict[str, LocalClientData]


@pytest.fixture
def selective(clients: Clients) -> tuple[Finished, Finished]:
    """A training with selective distillation of one round, and one of two rounds."""
    return train(SELECTIVE, clients, rounds=1), train(SELECTIVE, clients)


def test_a_row_has_the_losses_of_three_models(clients: Clients, selective: tuple[Finished, Finished]) -> None:
    """The client's own, the server's, and the one that was sent: in round 2 the server's of round 1."""
    first, second = selective
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
    assert progress.least == {
        f"{name}/{owner}": min(row.loss_of(owner) for row in progress.history if row.client == name)  # type: ignore[arg-type]
        for name in clients
        for owner in owners
    }


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
    clients = three(make_client) | {"C": frozen(make_client, 20)}
    both = {name: data for name, data in clients.items() if name != "C"}
    run = train(SELECTIVE, clients, rounds=3, joins={"C": 3})
    (row,) = [row for row in run.progress.history if row.client == "C"]
    server = server_of(train(SELECTIVE, both, rounds=2))
    assert row.round == 3
    assert row.sent_validation_loss == clients["C"].validation_loss(server)
    best = run.private.best["local"]["C"]
    assert same(best.sent, server)
    assert same(best.before, server)
    assert all(torch.allclose(tensor, server[name], atol=1e-9) for name, tensor in locals_of(run)["C"].items())
