"""History as a table, the best rounds, and whether a training has converged."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.federated.algorithm import Owner
from pipeline.federated.history import (
    Round,
    best_rounds,
    best_validation_loss,
    client_rounds,
    columns_of,
    ended_by_cap,
    judged,
    mean_by_round,
)  # fmt: skip
from pipeline.workspace.tables import read_table, write_table


def test_a_round_is_the_same_after_a_table(tmp_path: Path) -> None:
    """Also in a table of several runs, whose further columns are no figures."""
    one = Round(2, 3, "A", 2.25, 2.5, steps=4, bytes_up=7, best=True, figures={"share_distilled": 0.0, "tau": 5.0})
    idle = Round(2, 4, "A", server_validation_loss=2.0)
    for run in ({}, {"run": "fedavg", "seed": 2}):
        write_table(
            tmp_path / "history.csv", [run | row.to_row() for row in (one, idle)], [*run, *columns_of([one, idle])]
        )
        assert [Round.of_row(row, 2) for row in read_table(tmp_path / "history.csv")] == [one, idle]


def scored(
    number: int, local: float, server: float | None = None, *, client: str = "A", seed: int = 1, steps: int = 1
) -> Round:
    return Round(seed, number, client, 3.0, local_validation_loss=local, server_validation_loss=server, steps=steps)


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
    assert best_rounds(rows, "A") == [1, 2]
    assert best_validation_loss(rows) == 1.0


def test_client_rounds_are_counted_by_seed() -> None:
    """At seed 1 the client idles in one of its two rounds; at seed 2 there is one round."""
    assert client_rounds([scored(1, 2.0), scored(2, 2.0, steps=0), scored(1, 2.0, seed=2)]) == {1: 1, 2: 1}


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


ENDED = training([2.5, 2.0, 2.1, 2.2])
"""The best round is the second of four."""
OPEN = training([2.5, 2.2, 2.0, 2.1], "B")
"""The best round is the third of four."""


@pytest.mark.parametrize(
    ("history", "patience", "expected"),
    [
        pytest.param(ENDED, 2, False, id="patience ended it"),
        pytest.param(ENDED[:3], 2, True, id="one round after the best"),
        pytest.param(training([2.5, 2.2, 2.0]), 1, True, id="the best round is the last"),
        pytest.param(ENDED + OPEN, 2, True, id="the last client improved a round ago"),
        pytest.param(ENDED + training([2.5, 2.0, 2.1], seed=2), 2, True, id="a seed stopped too early"),
        pytest.param(ENDED + training([2.5, 2.0, 2.1, 2.2], seed=2), 2, False, id="both seeds ended"),
    ],
)
def test_a_training_ends_by_patience_or_by_the_cap(history: list[Round], patience: int, *, expected: bool) -> None:
    assert ended_by_cap(judged(history, "local"), patience) is expected
