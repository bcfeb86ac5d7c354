"""What a run's history.csv says: its rounds, the best of them, and whether more of them might change a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any

from pipeline.workspace import layout
from pipeline.workspace.tables import read_table


@dataclass(frozen=True)
class Round:
    """One client in one round: a row of history.csv, and the run's seed.

    Losses are in nats a token. What a method does not have, or an idle client has not, is None. `validation_loss` is
    that of the model that is evaluated, `teacher_validation_loss` of what was sent before the round, `best` whether
    this round's model is kept.
    """

    seed: int
    round: int
    client: str
    train_loss: float | None
    validation_loss: float
    local_validation_loss: float | None = None
    server_validation_loss: float | None = None
    teacher_validation_loss: float | None = None
    share_distilled: float | None = None
    teacher_entropy: float | None = None
    tau: float | None = None
    steps: int = 0
    bytes_down: int = 0
    bytes_up: int = 0
    best: bool = False

    @property
    def sent(self) -> int:
        """Bytes, down and up."""
        return self.bytes_down + self.bytes_up

    @classmethod
    def of_row(cls, row: Mapping[str, str], seed: int) -> Round:
        """Parse a row of history.csv; an empty cell is None."""
        cells = {known.name: _CELLS[str(known.type)](row[known.name]) for known in fields(cls) if known.name != "seed"}
        return cls(seed=seed, **cells)

    def to_row(self, run: str) -> dict[str, Any]:
        """A row of a table of several runs' histories, in the columns of history.csv."""
        return {"run": run} | asdict(self) | {"best": int(self.best)}


_CELLS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": lambda cell: cell == "1",
    "float | None": lambda cell: float(cell) if cell else None,
}
"""How a cell of history.csv is read, by the type of its field."""

History = Sequence[Round]
"""A run's rounds, of all its seeds."""


def read_history(run: str, seed: int) -> list[Round]:
    """One run at one seed, as its training left it.

    Raises:
        QuorumError: it is not trained.
    """
    return [Round.of_row(row, seed) for row in read_table(layout.history(run))]


def mean_by_round(history: History, value: Callable[[Round], float | None]) -> list[tuple[int, float]]:
    """(round, mean over clients and seeds), of the rounds in which anyone has a value.

    A seed that stopped early goes on with its last value, else a mean would jump where it stops.
    """
    ends = {one.seed: 0 for one in history}
    known: dict[tuple[int, str], dict[int, float]] = {}
    for one in history:
        ends[one.seed] = max(ends[one.seed], one.round)
        if (found := value(one)) is not None:
            known.setdefault((one.seed, one.client), {})[one.round] = found
    points = []
    for number in sorted({number for own in known.values() for number in own}):
        values = [
            own[number] if number in own else own[max(own)]
            for (seed, _), own in known.items()
            if number in own or number > ends[seed]
        ]
        points.append((number, fmean(values)))
    return points


def rounds_taken(history: History) -> dict[int, int]:
    """Seed -> how many rounds the run took."""
    ends: dict[int, int] = {}
    for one in history:
        ends[one.seed] = max(ends.get(one.seed, 0), one.round)
    return ends


def client_rounds(history: History) -> dict[int, int]:
    """Seed -> how many times a client trained in the run."""
    counts = dict.fromkeys((one.seed for one in history), 0)
    for one in history:
        counts[one.seed] += one.steps > 0
    return counts


def best_rounds(history: History, client: str) -> list[int]:
    """The best round at each seed, in the order of the rows."""
    return [one.round for one in history if one.client == client and one.best]


def best_validation_loss(history: History) -> float:
    """That of the best rounds, mean over clients and seeds."""
    return fmean(one.validation_loss for one in history if one.best)


def has_converged(history: History, clients: Sequence[str] = ()) -> bool:
    """Whether each of the clients (all, if none is named) had its best round before the last in which it trained.

    At every seed: `history` has the rows of all of them.
    """
    trainings: dict[tuple[int, str], list[Round]] = {}
    for one in history:
        if not clients or one.client in clients:
            trainings.setdefault((one.seed, one.client), []).append(one)
    return all(_before_the_last(own) for own in trainings.values())


def _before_the_last(own: History) -> bool:
    """`own`: one client's rounds at one seed.

    An idle round changes nothing of what the client has learned; where the server's model is evaluated it may, so that
    what is idle at the end reads as not converged.
    """
    last = max((one.round for one in own if one.steps), default=0)
    return all(one.round < last for one in own if one.best)
