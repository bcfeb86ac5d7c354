"""Rounds as a table, and whether a training was still improving."""

from __future__ import annotations

from pathlib import Path

from pipeline.federated.history import Round, has_converged
from pipeline.workspace.tables import read_table, write_table


def row(client: str, number: int, *, best: bool = False, steps: int = 1, seed: int = 1) -> Round:
    return Round(seed, number, client, None, 2.0, best=best, steps=steps)


def test_a_round_is_the_same_after_a_table(tmp_path: Path) -> None:
    one = Round(2, 3, "A", 2.25, 2.5, share_distilled=0.0, steps=4, bytes_up=7, best=True)
    write_table(tmp_path / "history.csv", [one.to_row("run")])
    (row,) = read_table(tmp_path / "history.csv")
    assert (row["run"], Round.of_row(row, int(row["seed"]))) == ("run", one)


def test_a_best_round_before_the_last_has_converged() -> None:
    history = [row("A", 1), row("A", 2, best=True), row("A", 3)]
    assert has_converged(history)
    assert not has_converged(history[:2])


def test_an_idle_round_is_no_later_round() -> None:
    """Best in round 2, the last in which the client was drawn: it has not converged."""
    assert not has_converged([row("A", 1), row("A", 2, best=True), row("A", 3, steps=0)])


def test_every_seed_must_have_converged() -> None:
    """The second seed stopped after round 2, its best; that the first went on to round 3 says nothing of it."""
    first = [row("A", 1), row("A", 2, best=True), row("A", 3)]
    assert not has_converged([*first, row("A", 1, seed=2), row("A", 2, best=True, seed=2)])


def test_only_the_named_clients_must_have_converged() -> None:
    history = [row("A", 1, best=True), row("A", 2), row("B", 1), row("B", 2, best=True)]
    assert has_converged(history, ["A"])
    assert not has_converged(history)
