"""The server's figures of a round, where figures go, and which figures of clients are refused."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
from federations import FEDAVG, SINGLE, build
from halfway import engine, one, run

from pipeline.errors import QuorumError
from pipeline.federated.aggregate import MeanCosine, aggregate
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.algorithms import fedavg
from pipeline.federated.figures import Bounds, undeclared
from pipeline.federated.history import Round, metrics_by_row
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance

CONTEXT = Context(seed=1, round=1)
BUFFERED = build("FedBuff", buffer=3)


def of_round(algorithm: Algorithm, *adapters: tuple[float, ...], start: tuple[float, ...] = (1.0, 1.0)) -> Any:
    """The figures of a round that begins with `start`; each client has one example."""
    updates = iter([Update(one(*map(float, values)), 1, 1, version=1) for values in adapters])
    return aggregate(algorithm, ServerState(one(*start)), updates, CONTEXT)[1]


@pytest.mark.parametrize(
    ("algorithm", "adapters"),
    [(FEDAVG, [(4, 1), (1, 5), (-4, 1)]), (BUFFERED, [(3, 0), (0, 4), (-5, 0)])],
    ids=["adapters", "changes"],
)
def test_the_norm_of_the_update_and_the_mean_cosine(algorithm: Algorithm, adapters: list[tuple[float, ...]]) -> None:
    """From (1, 1) the clients move by (3, 0), (0, 4) and (-5, 0), with cosines 0, -1 and 0.

    The mean change is (-2/3, 4/3), of norm √(4/9 + 16/9).
    """
    expected = {"update_norm": math.sqrt(20 / 9), "client_cosine": -1 / 3}
    assert of_round(algorithm, *adapters) == pytest.approx(expected, abs=1e-6)


def test_a_change_has_several_tensors() -> None:
    """(3, 4) and (4, 3), each in two tensors: (12 + 12) / (5 · 5)."""
    cosine = MeanCosine({})
    adapters = ({"a": torch.tensor([a]), "b": torch.tensor([b])} for a, b in ((3.0, 4.0), (4.0, 3.0)))
    list(cosine.watch(Update(adapter, 1, 1) for adapter in adapters))
    assert cosine.value() == pytest.approx(24 / 25)


def test_a_client_that_changed_nothing_has_no_direction() -> None:
    """With it, the mean over three pairs would be 1/3. One client has no pair."""
    assert of_round(FEDAVG, (2, 1), (3, 1), (1, 1))["client_cosine"] == pytest.approx(1.0)
    assert set(of_round(FEDAVG, (2, 1), (1, 1))) == {"update_norm"}


def test_an_algorithm_adds_figures_which_its_state_does_not_keep() -> None:
    def server_update(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
        return ServerState(fedavg.mean_of(updates).value(), figures={"round_twice": 2 * context.round})

    state, figures = aggregate(
        replace(FEDAVG, server_update=server_update), ServerState(one(0.0)), [Update(one(2.0), 1, 1)], CONTEXT
    )
    assert (state, figures) == (ServerState(one(2.0)), {"round_twice": 2, "update_norm": 2.0})


def test_a_server_update_that_returns_other_tensors_is_refused() -> None:
    renamed = replace(
        FEDAVG, server_update=lambda state, updates, context: ServerState({"another": state.adapter["x"]})
    )
    with pytest.raises(
        QuorumError, match="what server_update returns lacks tensor x; return the tensors that it was given"
    ):
        aggregate(renamed, ServerState({"x": torch.zeros(1)}), [Update({"x": torch.ones(1)}, 1, 1)], CONTEXT)


def test_a_server_that_receives_nothing_has_no_figures() -> None:
    assert of_round(SINGLE, (4, 1), (1, 5)) == {}


def test_every_row_of_a_round_has_the_servers_figures_and_a_skipped_round_has_none() -> None:
    """From 0, A trains to 2 and B to 4: the average is 3. In the second round, a change of 1 is too large."""
    progress = run(FEDAVG, engine(FEDAVG, A=4.0, B=8.0))
    assert [row.figures for row in progress.history] == [{"server/update_norm": 3.0, "server/client_cosine": 1.0}] * 2
    strict = Tolerance(largest_change=1.0, without_quorum="skip")
    assert [row.figures for row in run(FEDAVG, engine(FEDAVG, A=4.0, B=8.0), rules=strict).history] == [{}, {}]


def test_a_figure_is_the_servers_or_a_clients() -> None:
    progress = Progress(2, ServerState({}), history=tuple(Round(1, n, client) for n in (1, 2) for client in "AB"))
    found = progress.with_figures({"norm": 3.0, "A/drift": 1.0}).history
    assert [row.figures for row in found] == [{}, {}, {"server/norm": 3.0, "drift": 1.0}, {"server/norm": 3.0}]
    with pytest.raises(QuorumError, match=r"^figure 'C/drift': 'C' has no row in round 2; "):
        progress.with_figures({"C/drift": 1.0})
    with pytest.raises(QuorumError, match="'steps' is a column of history"):
        progress.with_figures({"A/steps": 1.0})


def test_metrics_have_the_name_of_their_client_and_the_servers_are_logged_once_a_round() -> None:
    rows = [
        Round(1, 1, "A", 2.5, steps=4, figures={"tau": 5.0, "server/norm": 3.0}),
        Round(1, 1, "B", figures={"server/norm": 3.0}),
    ]
    assert list(metrics_by_row(rows, ["train_loss", "steps"])) == [
        (1, {"A/train_loss": 2.5, "A/steps": 4.0, "A/tau": 5.0, "server/norm": 3.0}),
        (1, {"B/steps": 0.0}),
    ]


@pytest.mark.parametrize(
    ("declared", "drift", "why"),
    [
        ({"drift": Bounds(0.0)}, 2.0, None),
        ({"drift": Bounds()}, -2.0, None),
        ({}, 2.0, "reports 'drift', which is not a declared figure"),
        ({"drift": Bounds(0.0)}, -2.0, "reports drift -2, which is not between 0 and inf"),
        ({"drift": Bounds(0.0)}, math.nan, "reports drift nan, which is not between 0 and inf"),
    ],
)
def test_undeclared_figures(declared: dict[str, Bounds], drift: float, why: str | None) -> None:
    assert undeclared({"drift": drift}, declared) == why
