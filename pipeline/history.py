"""What a run's history.csv says: its best rounds, and whether more of them might change a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

History = Sequence[Mapping[str, str]]
"""Rows of a run's history.csv, with their seed."""


def best_rounds(history: History, client: str) -> list[int]:
    """The best round at each seed, in the order of the rows."""
    return [int(row["round"]) for row in history if row["client"] == client and row["best"] == "1"]


def best_validation_loss(history: History) -> float:
    """That of the best rounds, mean over clients and seeds."""
    return fmean(float(row["validation_loss"]) for row in history if row["best"] == "1")


def has_converged(history: History, clients: Sequence[str] = ()) -> bool:
    """Whether each of the clients (all, if none is named) had its best round before the last in which it trained.

    At every seed: `history` has the rows of all of them.
    """
    trainings: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in history:
        if not clients or row["client"] in clients:
            trainings.setdefault((row["seed"], row["client"]), []).append(row)
    return all(_before_the_last(own) for own in trainings.values())


def _before_the_last(own: Sequence[Mapping[str, str]]) -> bool:
    """`own`: one client's rows at one seed.

    An idle round changes nothing of what the client has learned; where the server's model is evaluated it may, so that
    what is idle at the end reads as not converged.
    """
    last = max((int(row["round"]) for row in own if int(row["steps"])), default=0)
    return all(int(row["round"]) < last for row in own if row["best"] == "1")
