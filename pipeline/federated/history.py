"""The history of a training: a row per client and round, and the best rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from pipeline.errors import QuorumError
from pipeline.federated.figures import SERVER, Figures
from pipeline.workspace.record import Json

if TYPE_CHECKING:
    from pipeline.federated.algorithm import Owner


@dataclass(frozen=True)
class Round:
    """One client in one round of a training: a row of history.csv.

    Losses are in nats per token. A value is None if the method has no such model, or if the client did not train.

    Attributes:
        round: from 1.
        train_loss: the mean loss while training.
        validation_loss: the validation loss of the model that the run's row of a table is about (see `judged`).
        local_validation_loss: the validation loss of the client's own model after the round.
        server_validation_loss: the validation loss of the server's model after the round.
        sent_validation_loss: the validation loss of the server's model before the round.
        bytes_down: received from the server, like `bytes_up`, sent to it.
        best: whether this is the client's best round (see `judged`).
        seconds: the duration of the client's training.
        figures: further columns: the client's figures, and the server's, which begin with `server/`.
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
    figures: Figures = field(default_factory=dict)

    @property
    def bytes_moved(self) -> int:
        """Bytes received and sent."""
        return self.bytes_down + self.bytes_up

    def known_loss(self, owner: Owner) -> float | None:
        """The validation loss of the client's own model, or the server's; None if there is no such model."""
        return self.local_validation_loss if owner == "local" else self.server_validation_loss

    def loss_of(self, owner: Owner) -> float:
        """The same, for a model that must exist."""
        loss = self.known_loss(owner)
        assert loss is not None, f"round {self.round} of {self.client} has no {owner} loss"
        return loss

    @classmethod
    def of_row(cls, row: Mapping[str, str], seed: int) -> Round:
        """Parse a row of history.csv. An empty cell is None; a column that is not a field is a figure."""
        cells = {name: cell for name, cell in row.items() if cell != ""}
        figures = {name: cell for name, cell in cells.items() if name not in _NOT_FIGURES}
        known = {name: cells[name] for name in COLUMNS if name in cells}
        return _ROUND.validate_python({**known, "seed": seed, "figures": figures})

    def to_row(self) -> Json:
        """A row of history.csv, without `seconds`, which differ from run to run."""
        return {name: getattr(self, name) for name in COLUMNS} | {"best": int(self.best)} | dict(self.figures)


CLOCK = "simulated_seconds"
"""The figure of a simulation with a clock: when the round ended, in seconds since the training began."""

_ROUND = TypeAdapter(Round)
COLUMNS = tuple(known.name for known in fields(Round) if known.name not in ("seed", "seconds", "figures"))
"""The columns of history.csv that every method has; figures follow."""
_NOT_FIGURES = {"run", *(known.name for known in fields(Round))}


def check_names(figures: Iterable[str], masks: Iterable[str]) -> None:
    """Check that the names of figures and masks can be read back from files.

    Raises QuorumError if a figure has the name of a column, or a name has a slash.
    """
    figures = list(figures)
    taken = [*(_NOT_FIGURES & set(figures)), *(name for name in (*figures, *masks) if "/" in name)]
    if taken:
        raise QuorumError(f"figure {taken[0]!r} is a column of history, or has a slash; choose another name")


History = Sequence[Round]  # the rows of a run, of all its seeds

OnRound = Callable[[Sequence[Round]], None]
"""A function that receives the rows of each finished round, one per client."""


def columns_of(history: Iterable[Round]) -> list[str]:
    """The columns of a table of these rounds."""
    return [*COLUMNS, *sorted({name for row in history for name in row.figures})]


def metrics_by_row(history: Iterable[Round], columns: Iterable[str]) -> Iterator[tuple[int, dict[str, float]]]:
    """(round, numbers by their names in MLflow) of each row of one seed: these columns, and all figures.

    Their names are `CLIENT/NAME`. The server's figures are `server/NAME`, and only a round's first row yields them.
    """
    columns, rounds = list(columns), set[int]()
    for row in history:
        values = {f"{row.client}/{name}": getattr(row, name) for name in columns}
        for name, value in row.figures.items():
            if not name.startswith(SERVER):
                values[f"{row.client}/{name}"] = value
            elif row.round not in rounds:
                values[name] = value
        rounds.add(row.round)
        yield row.round, {name: float(value) for name, value in values.items() if value is not None}


def judged(history: History, owner: Owner) -> list[Round]:
    """The same rounds with `validation_loss` and `best` filled in for one kind of model.

    A client's best round is the first with its least validation loss.
    """
    best: dict[tuple[int, str], Round] = {}
    for row in history:
        known = best.get((row.seed, row.client))
        if known is None or row.loss_of(owner) < known.loss_of(owner):
            best[row.seed, row.client] = row
    return [replace(row, validation_loss=row.loss_of(owner), best=best[row.seed, row.client] is row) for row in history]


def mean_by_round(history: History, value: Callable[[Round], float | None]) -> list[tuple[int, float]]:
    """(round, mean over clients and seeds), of the rounds in which some client has a value.

    A seed that stopped early counts with its last value in later rounds; otherwise the mean would jump there.
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
    """Seed -> the number of trainings of single clients in the run."""
    seeds = dict.fromkeys(one.seed for one in history)
    return {seed: sum(one.steps > 0 for one in history if one.seed == seed) for seed in seeds}


def best_rounds(history: History, client: str) -> list[int]:
    """A client's best round at each seed, in the order of the rows."""
    return [one.round for one in history if one.client == client and one.best]


def best_validation_loss(history: History) -> float:
    """The mean validation loss of the best rounds over clients and seeds, in nats per token."""
    return fmean(one.validation_loss for one in history if one.best and one.validation_loss is not None)


def ended_by_cap(history: History, patience: int) -> bool:
    """Whether at some seed the cap on rounds ended a training, and not `patience` rounds without improvement."""
    return any(
        max(one.round for one in own) - max(one.round for one in own if one.best) < patience
        for own in ([one for one in history if one.seed == seed] for seed in {one.seed for one in history})
    )
