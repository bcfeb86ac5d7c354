"""What is remembered of a training's rounds, the best of them, and whether more of them might change a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pipeline.errors import QuorumError

if TYPE_CHECKING:
    from pipeline.federated.algorithm import Owner


@dataclass(frozen=True)
class Round:
    """One client in one round of a training.

    Losses are in nats a token: `train_loss` while training, the others on the client's validation examples after it: of
    the client's own model, the server's, and what was sent before the round. What a method does not have, or an idle
    client has not, is None. `figures` are those that the method's objective names. `validation_loss` is that of the
    model that a run's row is about, `best` whether this round's model is kept for it (see `judged`).
    """

    seed: int
    round: int
    client: str
    train_loss: float | None = None
    validation_loss: float | None = None
    local_validation_loss: float | None = None
    server_validation_loss: float | None = None
    sent_validation_loss: float | None = None
    steps: int = 0
    bytes_down: int = 0
    bytes_up: int = 0
    best: bool = False
    seconds: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def bytes_moved(self) -> int:
        """Bytes, down and up."""
        return self.bytes_down + self.bytes_up

    @property
    def cross_entropy(self) -> float | None:
        """The part of the training loss that is about the references: all of it, unless the objective has others."""
        return self.figures.get("cross_entropy", self.train_loss)

    def known_loss(self, owner: Owner) -> float | None:
        """The validation loss of the client's own model, or the server's, where there is such a model."""
        return self.local_validation_loss if owner == "local" else self.server_validation_loss

    def loss_of(self, owner: Owner) -> float:
        """The same of a model that there is."""
        loss = self.known_loss(owner)
        assert loss is not None, f"round {self.round} of {self.client} has no {owner} loss"
        return loss

    @classmethod
    def of_row(cls, row: Mapping[str, str], seed: int) -> Round:
        """Parse a row of history.csv; an empty cell is None, a column that is no field a figure."""
        cells = {name: parse(row[name]) for name, parse in _CELLS.items() if row.get(name, "") != ""}
        others = {name: float(cell) for name, cell in row.items() if name not in _NOT_FIGURES and cell}
        return cls(seed=seed, figures=others, **cells)

    def to_row(self) -> dict[str, Any]:
        """A row of history.csv; what a clock says (`seconds`) is none of it."""
        return {name: getattr(self, name) for name in COLUMNS} | {"best": int(self.best)} | dict(self.figures)


CLOCK = "simulated_seconds"
"""Among the figures of a simulation with a clock: when the round ended, in seconds since the training began."""

_CELLS: dict[str, Callable[[str], Any]] = {
    "round": int,
    "client": str,
    "train_loss": float,
    "validation_loss": float,
    "local_validation_loss": float,
    "server_validation_loss": float,
    "sent_validation_loss": float,
    "steps": int,
    "bytes_down": int,
    "bytes_up": int,
    "best": lambda cell: cell == "1",
}
"""How a cell of history.csv is read."""

COLUMNS = tuple(_CELLS)
"""Those of history.csv that every method has; its objective's figures follow."""
_NOT_FIGURES = {"run", *(known.name for known in fields(Round))}


def check_names(figures: Iterable[str], masks: Iterable[str]) -> None:
    """What an objective names must not be taken for something else when it is read back.

    Raises:
        QuorumError: a figure is called like a column, or a mask has a slash in its name.
    """
    taken = [*(_NOT_FIGURES & set(figures)), *(mask for mask in masks if "/" in mask)]
    if taken:
        raise QuorumError(f"objective: {taken[0]!r} is a column of history, or has a slash; choose another name")


History = Sequence[Round]
"""A run's rounds, of all its seeds."""

OnRound = Callable[[Sequence[Round]], None]
"""Who wants to know of a finished round: it is told the round's rows of history, one a client."""


def columns_of(history: Iterable[Round]) -> list[str]:
    """All columns of a table of these rounds."""
    return [*COLUMNS, *sorted({name for row in history for name in row.figures})]


def judged(history: History, owner: Owner) -> list[Round]:
    """The same rounds with `validation_loss` and `best` filled in, for a row about `owner`'s model.

    A client's best round is the first with its least validation loss.
    """
    best: dict[tuple[int, str], Round] = {}
    for row in history:
        known = best.get((row.seed, row.client))
        if known is None or row.loss_of(owner) < known.loss_of(owner):
            best[row.seed, row.client] = row
    return [replace(row, validation_loss=row.loss_of(owner), best=best[row.seed, row.client] is row) for row in history]


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
    return fmean(one.validation_loss for one in history if one.best and one.validation_loss is not None)


def ended_by_cap(history: History, patience: int) -> bool:
    """Whether at some seed the cap on rounds ended a training, and not `patience` rounds without improvement."""
    return any(
        max(one.round for one in own) - max(one.round for one in own if one.best) < patience
        for own in ([one for one in history if one.seed == seed] for seed in {one.seed for one in history})
    )
