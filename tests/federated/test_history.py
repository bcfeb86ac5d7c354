"""Rounds as a table, the best of them, and whether a training was still improving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pipeline.federated.algorithm import Owner
from pipeline.federated.history import (
    COLUMNS,
    Round,
    best_rounds,
    best_validation_loss,
    client_rounds,
    columns_of,
    has_converged,
    judged,
    mean_by_round,
)
from pipeline.workspace.tables import read_table, write_table

# -- as a table -------------------------------------------------------------------------------------------------------


def test_a_round_is_the_same_after_a_table(tmp_path: Path) -> None:
    one = Round(2, 3, "A", 2.25, 2.5, steps=4, bytes_up=7, best=True, figures={"share_distilled": 0.0, "tau": 5.0})
    idle = Round(2, 4, "A", server_validation_loss=2.0)
    write_table(tmp_path / "history.csv", [one.to_row(), idle.to_row()], columns_of([one, idle]))
    rows = read_table(tmp_path / "history.csv")
    assert [Round.of_row(row, 2) for row in rows] == [one, idle]


def test_a_table_of_several_runs_has_a_column_more(tmp_path: Path) -> None:
    """Which is no figure of the round."""
    one = Round(1, 3, "A", 2.25)
    write_table(tmp_path / "history.csv", [{"run": "fedavg", "seed": 1, **one.to_row()}])
    (row,) = read_table(tmp_path / "history.csv")
    assert Round.of_row(row, int(row["seed"])) == one


def test_the_columns_are_all_that_is_known_of_a_round_but_its_clock() -> None:
    assert set(COLUMNS) == {known.name for known in fields(Round)} - {"seed", "seconds", "figures"}


def test_figures_follow_in_the_order_of_their_names() -> None:
    rows = [Round(1, 1, "A", figures={"tau": 5.0}), Round(1, 2, "A", figures={"entropy": 1.0})]
    assert columns_of(rows) == [*COLUMNS, "entropy", "tau"]


def test_the_part_about_the_references_is_all_of_the_loss_unless_there_is_another() -> None:
    assert Round(1, 1, "A", 2.5).cross_entropy == 2.5
    assert Round(1, 1, "A", 2.5, figures={"cross_entropy": 3.0}).cross_entropy == 3.0
    assert Round(1, 1, "A").cross_entropy is None


# -- the best of them -------------------------------------------------------------------------------------------------


def scored(
    number: int, local: float, server: float | None = None, *, client: str = "A", seed: int = 1, steps: int = 1
) -> Round:
    return Round(seed, number, client, 3.0, local_validation_loss=local, server_validation_loss=server, steps=steps)


HISTORY = [scored(1, 2.0, 2.5), scored(2, 1.5, 2.1), scored(3, 1.7, 2.1)]
"""The client's own model is best in round 2, the server's in rounds 2 and 3 alike."""


@pytest.mark.parametrize(
    ("owner", "losses", "best"),
    [("local", [2.0, 1.5, 1.7], [False, True, False]), ("server", [2.5, 2.1, 2.1], [False, True, False])],
)
def test_a_best_round_is_the_first_with_the_least_loss(owner: Owner, losses: list[float], best: list[bool]) -> None:
    rows = judged(HISTORY, owner)
    assert [row.validation_loss for row in rows] == losses
    assert [row.best for row in rows] == best


def test_judging_again_forgets_the_first_judgement() -> None:
    """By the server's the second round is best, by the client's own the first."""
    history = [scored(1, 1.0, 3.0), scored(2, 2.0, 2.5)]
    assert judged(judged(history, "server"), "local") == judged(history, "local")
    assert [row.best for row in judged(history, "local")] == [True, False]


def test_every_client_and_seed_has_a_best_round_of_its_own() -> None:
    history = [scored(n, loss, client=c, seed=s) for s in (1, 2) for c in "AB" for n, loss in ((1, s), (2, 3.0 - s))]
    rows = judged(history, "local")
    assert [(row.seed, row.client, row.round) for row in rows if row.best] == [
        (1, "A", 1),
        (1, "B", 1),
        (2, "A", 2),
        (2, "B", 2),
    ]
    assert best_rounds(rows, "A") == [1, 2]
    assert best_validation_loss(rows) == 1.0


def test_a_method_without_a_server_is_not_judged_by_one() -> None:
    with pytest.raises(AssertionError, match="no server loss"):
        judged([scored(1, 2.0)], "server")


def test_client_rounds_are_counted_a_seed() -> None:
    """At seed 1 the client idled in one of its two rounds; at seed 2 there was one round."""
    history = [scored(1, 2.0), scored(2, 2.0, steps=0), scored(1, 2.0, seed=2)]
    assert client_rounds(history) == {1: 1, 2: 1}


def test_a_mean_goes_on_with_the_last_value_of_a_seed_that_stopped() -> None:
    """Seed 1: 3.0 and 2.0; seed 2 stops after its 1.0: means 2.0 and 1.5."""
    history = [scored(1, 3.0), scored(2, 2.0), scored(1, 1.0, seed=2)]
    assert mean_by_round(history, lambda row: row.local_validation_loss) == [(1, 2.0), (2, 1.5)]


def test_a_mean_leaves_out_who_has_no_value_in_a_round() -> None:
    """B comes in round 2: 3.0 alone, then (2.0 + 4.0) / 2."""
    history = [scored(1, 3.0), scored(2, 2.0), scored(2, 4.0, client="B")]
    assert mean_by_round(history, lambda row: row.local_validation_loss) == [(1, 3.0), (2, 3.0)]
    assert mean_by_round(history, lambda row: row.server_validation_loss) == []


# -- whether more rounds might change a result ------------------------------------------------------------------------


def training(
    train: Sequence[float | None], validation: Sequence[float], client: str = "A", seed: int = 1, first: int = 1
) -> list[Round]:
    """A client's rounds by its losses in training (None: idle) and on validation examples, from round `first` on."""
    return [
        replace(scored(first + i, loss, client=client, seed=seed, steps=int(trained is not None)), train_loss=trained)
        for i, (trained, loss) in enumerate(zip(train, validation, strict=True))
    ]


LEARNED = training([3.0, 2.0, 1.5, 1.2], [2.5, 2.0, 2.1, 2.2])
"""The best round is the second of four, and two rounds later it was over."""


def converged(history: Sequence[Round], patience: int = 2, clients: Sequence[str] = ()) -> bool:
    return has_converged(judged(history, "local"), patience, clients)


def test_a_training_that_learned_until_patience_ended_it_has_converged() -> None:
    assert converged(LEARNED)


def test_a_training_that_a_cap_ended_has_not_converged() -> None:
    """One round after its best; with a patience of 1 it would have."""
    assert not converged(LEARNED[:3])
    assert converged(LEARNED[:3], patience=1)


def test_a_training_that_ends_in_its_best_round_has_not_converged() -> None:
    assert not converged(training([3.0, 2.0, 1.5], [2.5, 2.2, 2.0]), patience=1)


def test_a_training_that_diverges_has_not_converged() -> None:
    """Its best round is its first, since each next one is worse; nothing was learned."""
    assert not converged(training([3.0, 4.0, 5.0, 6.0], [2.5, 3.0, 4.0, 5.0]))


def test_a_training_whose_loss_rose_until_its_best_round_has_not_converged() -> None:
    """Validation happened to fall once while the loss in training went up."""
    assert not converged(training([3.0, 3.5, 4.0, 5.0], [2.5, 2.4, 3.0, 4.0]))


def test_a_loss_that_stayed_has_not_fallen() -> None:
    assert not converged(training([3.0, 3.0, 2.0, 1.0], [2.5, 2.4, 3.0, 4.0]))


def test_what_happens_after_the_best_round_says_nothing_of_learning() -> None:
    """It diverges after round 2, of which the kept model knows nothing."""
    assert converged(training([3.0, 2.0, 7.0, 9.0], [2.5, 2.0, 5.0, 6.0]))


def test_of_a_loss_with_parts_the_part_about_the_references_counts() -> None:
    """All of the loss falls from 3 to 2 as the teacher's part does, while cross-entropy rises from 2.5 to 2.6."""
    rows = [
        replace(row, figures={"cross_entropy": part}) for row, part in zip(LEARNED, (2.5, 2.6, 2.7, 2.8), strict=True)
    ]
    assert not converged(rows)
    assert converged([replace(row, train_loss=9.0, figures={"cross_entropy": 3.0 - row.round}) for row in rows])


def test_an_idle_round_is_passed_over() -> None:
    """Drawn in rounds 1 and 3, best in round 4, where it idles and the server's model is its own: 3 to 2."""
    assert converged(training([3.0, None, 2.0, None, None, None], [2.5, 2.5, 2.1, 2.0, 2.0, 2.0]))


def test_who_was_drawn_but_once_by_its_best_round_has_not_shown_that_it_learns() -> None:
    assert not converged(training([None, 3.0, None, None, 1.0], [2.5, 2.0, 2.0, 2.1, 2.2]))


def test_patience_waits_for_the_last_client() -> None:
    """A is best in round 2, B in round 3: in round 4 patience has not ended the training, in round 5 it has."""
    other = training([3.0, 2.0, 1.5, 1.2, 1.0], [2.5, 2.2, 2.0, 2.1, 2.2], "B")
    longer = training([3.0, 2.0, 1.5, 1.2, 1.1], [2.5, 2.0, 2.1, 2.2, 2.3])
    assert not converged(longer[:4] + other[:4])
    assert converged(longer + other)


def test_a_late_client_learns_from_its_own_first_round_on() -> None:
    late = training([4.0, 3.0, 2.0, 1.0], [3.0, 2.0, 2.1, 2.2], "B", first=3)
    early = training([3.0, 2.0, 1.5, 1.2, 1.1, 1.0], [2.5, 2.0, 2.1, 2.2, 2.3, 2.4])
    assert converged(early + late)


def test_every_seed_must_have_converged() -> None:
    """The second seed stopped one round after its best; that the first went on for two says nothing of it."""
    second = training([3.0, 2.0, 1.5], [2.5, 2.0, 2.1], seed=2)
    assert not converged([*LEARNED, *second])
    assert converged([*LEARNED, *training([3.0, 2.0, 1.5, 1.2], [2.5, 2.0, 2.1, 2.2], seed=2)])


def test_only_the_named_clients_must_have_learned() -> None:
    never = training([3.0, 4.0, 5.0, 6.0], [2.5, 3.0, 4.0, 5.0], "B")
    assert converged([*LEARNED, *never], clients=["A"])
    assert not converged([*LEARNED, *never])
    assert not converged([*LEARNED, *never], clients=["B"])
