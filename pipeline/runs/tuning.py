"""Tuning on validation, at a seed that no table reports: as many trials for every method.

A search of `tune` trains its runs with each value of one grid, and chooses the value with the least validation loss, of
the round that tables evaluate, averaged over clients. If the best value of any run is at an end of the grid, the grid
gets one more value there, for all. Later searches have the values that earlier ones chose. Test examples are left out
before anything is drawn, read or encoded. Trials end by patience. Each is a row of results/tuning.csv, in git, with its
precision and code; the table shows from which values those of params.yaml were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from operator import itemgetter
from statistics import fmean

from pydantic import ValidationError

from pipeline.clients.manifest import Manifest
from pipeline.corpora.example import Split, examples_of, sampled
from pipeline.errors import QuorumError
from pipeline.plan.checks import checked, read_params
from pipeline.plan.code import without_code
from pipeline.plan.learner import Training
from pipeline.plan.orders import EncodeOrder, PartitionOrder, TrainOrder
from pipeline.plan.resolve import encode_order, partition_order
from pipeline.plan.schema import Params, Search
from pipeline.plan.training import precision_of, train_order
from pipeline.runs.encoding import encode
from pipeline.runs.index import Index, index_of, training_key
from pipeline.runs.partitioning import draw
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.result_files import refuse_another_precision
from pipeline.runs.training import Finished, train_learner
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json, first_problem
from pipeline.workspace.tables import read_table, write_table

COLUMNS = (
    *("scale", "search", "chooses", "run", "method", "value", "validation_loss", "best_rounds", "rounds", "ended"),
    *("chosen", "precision", "code", "fingerprint"),
)
WIDENED = 4
"""How often a grid gets values beyond its ends, at most."""
NEAR = 0.01
"""Trials within this many nats of the best are near it."""
VISIBLE: tuple[Split, ...] = ("train", "val")
"""The splits of which tuning draws, reads and encodes examples: no choice may see a test."""


@dataclass(frozen=True)
class Drawn:
    """A run's clients and examples at the seed of tuning, and a hash of them."""

    manifest: Manifest
    index: Index
    digest: str


@dataclass(frozen=True)
class Trial:
    """A run trained with a value at a key of params.yaml."""

    key: str
    run: str
    method: str
    value: float
    order: TrainOrder
    drawn: Drawn

    @property
    def training(self) -> Training:
        assert self.order.training is not None
        return self.order.training

    @property
    def fingerprint(self) -> str:
        """A hash of its training's knobs and data, apart from the code, and of which model's loss is taken."""
        knobs = without_code(self.training.model_dump(mode="json"))
        return sha256_json([knobs, self.drawn.digest, self.order.evaluate, self.order.evaluated])[:16]

    @property
    def training_key(self) -> str:
        """The name of its training's checkpoint."""
        return training_key(self.training, self.drawn.manifest, self.drawn.index)

    @property
    def code(self) -> str:
        """A hash of the code that trains it."""
        return sha256_json(self.training.code)[:16]

    def row(self) -> Json | None:
        """Its row of the table, with numbers, if it has been tried."""
        known = (one for one in _known() if (one["fingerprint"], one["chooses"]) == (self.fingerprint, self.key))
        row = next(known, None)
        return row and row | {"value": float(row["value"]), "validation_loss": float(row["validation_loss"])}

    def __str__(self) -> str:
        return f"{self.run}, {self.key.rpartition('.')[2]}={self.value:g}"


def tune() -> None:
    """Train the missing trials, and write results/tuning.csv after each; rows of other scales and searches stay.

    Raises QuorumError if data are not prepared, a value does not fit its key, or a trial was run in another precision.
    """
    params = read_params()
    if not params.tune.searches:
        raise QuorumError("params.yaml: tune.searches: is empty; name a grid and what it chooses")
    for row in _known():
        if row["scale"] == params.scale and row["fingerprint"]:
            refuse_another_precision(layout.TUNING_TABLE, row["precision"], precision_of(params))
    drawn = cache(partial(_drawn, params))
    for name, search in params.tune.searches.items():
        if any(params.runs[run].at not in (None, params.scale) for run in search.chooses.values()):
            continue
        rows, grid = _searched(params, name, search, drawn)
        for line in in_words(rows, grid):
            say(f"tune: {name}: {line}")
        for row in (row for row in rows if row["chosen"]):
            params = with_value(params, row["chooses"], row["value"])
    say(f"tune: {layout.TUNING_TABLE}; set what it chose in params.yaml")


def _known() -> list[Json]:
    return [dict(row) for row in read_table(layout.TUNING_TABLE)] if layout.TUNING_TABLE.is_file() else []


def _searched(
    params: Params, name: str, search: Search, drawn: Callable[[str], Drawn]
) -> tuple[list[Json], Sequence[float]]:
    """The rows of all values tried, the best one of each key marked; and these values."""
    grid, about = list(search.grid), {"scale": params.scale, "search": name}
    for left in range(WIDENED, -1, -1):
        trials = [
            Trial(key, run, params.runs[run].method, value, _order(params, key, run, value), drawn(run))
            for key, run in search.chooses.items()
            for value in grid
        ]
        rows = with_choices([_row_of(trial, about) | about for trial in trials])
        # Only now: two keys may choose by different models of one training.
        remove_checkpoints([layout.checkpoints() / trial.training_key for trial in trials])
        best = {float(row["value"]) for row in rows if row["chosen"]}
        further = (beyond(grid, end) for end in sorted(best))
        more = [value for value in further if value is not None and _can_have(params, search, value)]
        if not more or not left:
            break
        tried = ", ".join(f"{value:g}" for value in grid)
        say(f"tune: {name}: the best of {tried} is at an end: also {', '.join(map(str, more))}")
        grid = sorted({*grid, *more})
    others = [row for row in _known() if (row["scale"], row["search"]) != (params.scale, name)]
    write_table(layout.TUNING_TABLE, [*others, *rows], COLUMNS)
    return rows, grid


def in_words(rows: Sequence[Json], grid: Sequence[float]) -> Iterator[str]:
    """What a search chose, and where more values or rounds may be better."""
    for row in (row for row in rows if row["chosen"]):
        value, loss = f"{row['chooses']}: {row['value']:g}", row["validation_loss"]
        capped = " (the cap on rounds ended it)" if row["ended"] == "cap" else ""
        at_end = ", at an end of what was tried" if row["value"] in (grid[0], grid[-1]) else ""
        yield f"{value} has the least validation loss, {loss}{capped}{at_end}"
        rivals = [one for one in rows if one["chooses"] == row["chooses"] and one is not row and one["ended"] == "cap"]
        if near := ", ".join(f"{one['value']:g}" for one in rivals if one["validation_loss"] <= loss + NEAR):
            yield f"{row['chooses']}: the cap on rounds ended {near}, near the best: try more rounds"


def beyond(grid: Sequence[float], best: float) -> float | None:
    """The next value beyond the end at which the best lies, by the step that the ascending grid has there.

    None inside, and where there is no step: of one value, and to or from 0.

    >>> beyond([1.0, 2.0, 4.0], 4.0), beyond([0.1, 0.2, 1.0], 0.1), beyond([1.0, 2.0, 4.0], 2.0)
    (8.0, 0.05, None)
    """
    if len(grid) < 2 or best not in (grid[0], grid[-1]):
        return None
    end, inner = (grid[0], grid[1]) if best == grid[0] else (grid[-1], grid[-2])
    return float(f"{end * end / inner:.3g}") if end and inner else None


def with_value(params: Params, key: str, value: float) -> Params:
    """params.yaml with another value at a dotted key. Raises QuorumError if the key is unknown or cannot have it."""
    content = params.model_dump(by_alias=True, exclude_unset=True, mode="json")
    *path, last = key.split(".")
    table: object = content
    for name in path:
        table = table.setdefault(name, {}) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        raise QuorumError(f"params.yaml: tune: {key}: is no key; correct it")
    table[last] = int(value) if value.is_integer() else value  # numbers of rounds and the like are integers
    try:
        return checked(content)
    except ValueError as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise QuorumError(f"params.yaml: tune: {problem}; correct it") from None


def _can_have(params: Params, search: Search, value: float) -> bool:
    """Whether all keys of a search can have a value."""
    try:
        for key, run in search.chooses.items():
            _order(params, key, run, value)
    except QuorumError:
        return False
    return True


def _order(params: Params, key: str, run: str, value: float) -> TrainOrder:
    """A run's training with a value at a key, at the seed of tuning. Raises QuorumError if the run cannot have it."""
    changed = with_value(params, key, value)
    order = train_order(changed, run)
    if order.left_out:
        raise QuorumError(f"params.yaml: tune: {key}={value:g}: {order.left_out}; leave it out")
    if order.training is None:
        raise QuorumError(f"params.yaml: tune: {key}: run {run} trains nothing; choose another")
    if _data_orders(changed, run) != _data_orders(params, run):
        raise QuorumError(f"params.yaml: tune: {key}: changes a run's data or what is stored of them; choose another")
    training = order.training.model_copy(update={"seed": params.tune.seed, "keep_rounds": False})
    return order.model_copy(update={"training": training})


def _data_orders(params: Params, run: str) -> tuple[PartitionOrder, EncodeOrder]:
    """The orders that draw and encode a run's setting at the seed of tuning, without test examples."""
    # Batches decide no data; that they are enough is checked where the setting is partitioned.
    name, seeds = params.runs[run].setting, [params.tune.seed]
    order = partition_order(params, name, seeds)
    order = order.model_copy(update={"take": order.take.model_copy(update={"test": None}), "batch": None})
    return order, encode_order(params, name, [run], seeds)


def _drawn(params: Params, run: str) -> Drawn:
    """Draw and encode a run's setting at the seed of tuning, without test examples."""
    name, seed = params.runs[run].setting, params.tune.seed
    order, encoding = _data_orders(params, run)
    every = examples_of(order.data, load_task(order.task).kind)
    examples = {identity: example for identity, example in every.items() if example.split != "test"}
    one = draw(name, order, examples, seed, sampled(order.data), needed=VISIBLE)
    indices, _ = encode(name, encoding, examples, {seed: one.manifest})
    index = index_of(indices[run])
    used = {i: asdict(examples[i]) for own in one.manifest.values() for split in VISIBLE for i in own[split]}
    return Drawn(one.manifest, index, sha256_json([one.manifest, used, index.digest]))


def _row_of(trial: Trial, about: Json) -> Json:
    """A trial's row in the table; one that is not there is trained and added."""
    row = trial.row()
    if row is None:
        row = _try(trial)
        write_table(layout.TUNING_TABLE, [*_known(), about | row | {"chosen": 0}], COLUMNS)
    if row["code"] != trial.code:
        say(f"tune: {trial}: was tried by an earlier version of this code")
    return row


def _try(trial: Trial) -> Json:
    """Train a trial; its row of the table."""
    try:
        data, key = trial.drawn, trial.training_key
        finished = train_learner(trial.training, data.manifest, data.index, key, str(trial), lambda rows: None)
        found = _found(finished, trial)
    except QuorumError as error:
        if error.code != "not_finite":
            raise
        say(f"tune: {trial}: diverged: {error}")
        found = {"validation_loss": math.inf, "best_rounds": "", "rounds": 0, "ended": "divergence"}
    about = {"chooses": trial.key, "run": trial.run, "method": trial.method, "value": trial.value}
    how = {"precision": trial.training.learner.precision, "code": trial.code, "fingerprint": trial.fingerprint}
    return about | found | how


def _found(finished: Finished, trial: Trial) -> Json:
    """A trial's validation loss of the evaluated round, the mean over clients, and its rounds."""
    owner = trial.order.evaluate or "server"
    best = finished.private.best[owner]
    losses = [one.loss for one in best.values()]
    if trial.order.evaluated == "last":
        losses = [loss for row in finished.progress.last if (loss := row.known_loss(owner)) is not None]
    return {
        "validation_loss": round(fmean(losses), 5),
        "best_rounds": "/".join(str(one.round) for one in best.values()),
        "rounds": finished.progress.round,
        "ended": "patience" if finished.progress.stale >= trial.training.patience else "cap",
    }


def with_choices(rows: Sequence[Json]) -> list[Json]:
    """Mark the best trial of each key; the first of equal ones."""
    by_key: dict[str, list[Json]] = {}
    for row in rows:
        by_key.setdefault(row["chooses"], []).append(row)
    best = {key: min(own, key=itemgetter("validation_loss")) for key, own in by_key.items()}
    return [row | {"chosen": int(best[row["chooses"]] is row)} for row in rows]
