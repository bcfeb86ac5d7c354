"""History as a table, the best rounds, whether a training has converged, and the figures of rounds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from federations import FEDAVG, build
from halfway import engine, one, run

from pipeline.errors import QuorumError
from pipeline.federated.aggregate import MeanCosine, aggregate
from pipeline.federated.algorithm import Algorithm, Context, Owner, ServerState, Update
from pipeline.federated.algorithms import fedavg
from pipeline.federated.figures import Bounds, undeclared
from pipeline.federated.history import Round, best_validation_loss, columns_of, ended_by_cap, judged, mean_by_round
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import Tolerance
from pipeline.workspace.tables import read_table, write_table

CONTEXT = Context(seed=1, round=1)


def test_a_round_is_the_same_after_a_table(tmp_path: Path) -> None:
    """Also in a table of several runs, whose further columns are no figures."""
    first = Round(2, 3, "A", 2.25, 2.5, steps=4, bytes_up=7, best=True, figures={"share_distilled": 0.0, "tau": 5.0})
    idle = Round(2, 4, "A", server_validation_loss=2.0)
    for more in ({}, {"run": "fedavg", "seed": 2}):
        rows, columns = [more | row.to_row() for row in (first, idle)], [*more, *columns_of([first, idle])]
        write_table(tmp_path / "history.csv", rows, columns)
        assert [Round.of_row(row, 2) for row in read_table(tmp_path / "history.csv")] == [first, idle]


def scored(number: int, local: float, server: float | None = None, client: str = "A", seed: int = 1) -> Round:
    return Round(seed, number, client, 3.0, local_validation_loss=local, server_validation_loss=server, steps=1)


@pytest.mark.parametrize(("owner", "losses"), [("local", [2.0, 1.5, 1.7]), ("server", [2.5, 2.1, 2.1])])
def test_a_best_round_is_the_first_with_the_least_loss(owner: Owner, losses: list[float]) -> None:
    """The client's own model is best in round 2, the server's in rounds 2 and 3; judging by both changes nothing."""
    history = [scored(1, 2.0, 2.5), scored(2, 1.5, 2.1), scored(3, 1.7, 2.1)]
    rows = judged(judged(history, "server"), owner)
    assert [row.validation_loss for row in rows] == losses
    assert [row.best for row in rows] == [False, True, False]


def test_each_client_and_seed_has_a_best_round() -> None:
    history = [scored(n, loss, client=c, seed=s) for s in (1, 2) for c in "AB" for n, loss in ((1, s), (2, 3.0 - s))]
    rows = judged(history, "local")
    best = [(row.seed, row.client, row.round) for row in rows if row.best]
    assert best == [(1, "A", 1), (1, "B", 1), (2, "A", 2), (2, "B", 2)]
    assert best_validation_loss(rows) == 1.0


def test_means_by_round() -> None:
    """Seed 2 stops after its 1.0, which counts in round 2, too; B joins in round 2."""
    stopped = [scored(1, 3.0), scored(2, 2.0), scored(1, 1.0, seed=2)]
    assert mean_by_round(stopped, lambda row: row.local_validation_loss) == [(1, (3 + 1) / 2), (2, (2 + 1) / 2)]
    joined = [scored(1, 3.0), scored(2, 2.0), scored(2, 4.0, client="B")]
    assert mean_by_round(joined, lambda row: row.local_validation_loss) == [(1, 3.0), (2, (2 + 4) / 2)]
    assert mean_by_round(joined, lambda row: row.server_validation_loss) == []


def training(validation: Sequence[float], client: str = "A", seed: int = 1) -> list[Round]:
    """A client's rounds by its validation losses."""
    return [scored(number, loss, client=client, seed=seed) for number, loss in enumerate(validation, 1)]


SECOND_OF_FOUR = training([2.5, 2.0, 2.1, 2.2])
THIRD_OF_FOUR = training([2.5, 2.2, 2.0, 2.1], "B")
ENDS = [
    pytest.param(SECOND_OF_FOUR, 2, False, id="patience ended it"),
    pytest.param(SECOND_OF_FOUR[:3], 2, True, id="one round after the best"),
    pytest.param(training([2.5, 2.2, 2.0]), 1, True, id="the best round is the last"),
    pytest.param(SECOND_OF_FOUR + THIRD_OF_FOUR, 2, True, id="the last client improved a round ago"),
    pytest.param(SECOND_OF_FOUR + training([2.5, 2.0, 2.1], seed=2), 2, True, id="a seed stopped too early"),
    pytest.param(SECOND_OF_FOUR + training([2.5, 2.0, 2.1, 2.2], seed=2), 2, False, id="both seeds ended"),
]
DRIFTS = [
    ({"drift": Bounds(0.0)}, 2.0, None),
    ({"drift": Bounds()}, -2.0, None),
    ({}, 2.0, "reports 'drift', which is not a declared figure"),
    ({"drift": Bounds(0.0)}, -2.0, "reports drift -2, which is not between 0 and inf"),
    ({"drift": Bounds(0.0)}, math.nan, "reports drift nan, which is not between 0 and inf"),
]


@pytest.mark.parametrize(("history", "patience", "expected"), ENDS)
def test_a_training_ends_by_patience_or_by_the_cap(history: list[Round], patience: int, *, expected: bool) -> None:
    assert ended_by_cap(judged(history, "local"), patience) is expected


def of_round(algorithm: Algorithm, *adapters: tuple[float, ...]) -> Any:
    """The figures of a round that begins with (1, 1); each client has one example."""
    updates = iter([Update(one(*map(float, values)), 1, 1, version=1) for values in adapters])
    return aggregate(algorithm, ServerState(one(1.0, 1.0)), updates, CONTEXT)[1]


def test_the_norm_of_the_update_and_the_mean_cosine() -> None:
    """By (3, 0), (0, 4) and (-5, 0) from (1, 1): cosines 0, -1 and 0; the mean (-2/3, 4/3) has norm √(4/9 + 16/9)."""
    expected = pytest.approx({"update_norm": math.sqrt(20 / 9), "client_cosine": -1 / 3}, abs=1e-6)
    assert of_round(FEDAVG, (4, 1), (1, 5), (-4, 1)) == expected
    assert of_round(build("FedBuff", buffer=3), (3, 0), (0, 4), (-5, 0)) == expected


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

    algorithm = replace(FEDAVG, server_update=server_update)
    state, figures = aggregate(algorithm, ServerState(one(0.0)), [Update(one(2.0), 1, 1)], CONTEXT)
    assert (state, figures) == (ServerState(one(2.0)), {"round_twice": 2, "update_norm": 2.0})


def test_a_server_update_that_returns_other_tensors_is_refused() -> None:
    renamed = replace(FEDAVG, server_update=lambda state, *_: ServerState({"another": state.adapter["w"]}))
    with pytest.raises(QuorumError, match="what server_update returns lacks tensor w; return the tensors that it was"):
        aggregate(renamed, ServerState(one(0.0)), [Update(one(1.0), 1, 1)], CONTEXT)


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


@pytest.mark.parametrize(("declared", "drift", "why"), DRIFTS)
def test_undeclared_figures(declared: dict[str, Bounds], drift: float, why: str | None) -> None:
    assert undeclared({"drift": drift}, declared) == why
