"""Tuning on validation, at a seed that no table reports: as many trials for every method.

A search of `tune` trains its runs with each value of one grid, and chooses the value with the least validation loss, of
the round that tables evaluate, averaged over clients. If the best value of any run is at an end of the grid, the grid
gets one more value there, for all. Later searches have the values that earlier ones chose. Test examples are left out
before anything is drawn, read or encoded. Trials end by patience. Each is a row of results/tuning.csv, in git, with its
precision and code; the table shows from which values those of params.yaml were chosen.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
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
from pipeline.plan.schema import Params
from pipeline.plan.training import precision_of, train_order
from pipeline.runs.encoding import encode
from pipeline.runs.index import Index, index_of, training_key
from pipeline.runs.partitioning import draw
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.result_files import refuse_another_precision
from pipeline.runs.training import train_learner
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
WIDENED = 4  # how often a grid gets values beyond its ends, at most
NEAR = 0.01  # trials within this many nats of the best are near it
VISIBLE: tuple[Split, ...] = ("train", "val")
"""The splits of which tuning draws, reads and encodes examples: no choice may see a test."""


@dataclass(frozen=True)
class TrialData:
    """A run's clients and examples at the seed of tuning, and a hash of them."""

    manifest: Manifest
    index: Index
    digest: str


DataOf = Callable[[str], TrialData]  # run -> its data


@dataclass(frozen=True)
class Trial:
    """A run trained with a value at a key of params.yaml.

    `about`: its cells of the table; of these `code` is a hash of the code that trains it, and `fingerprint` one of its
    training's knobs and data, apart from the code, and of which model's loss is taken.
    """

    about: Json
    order: TrainOrder
    training: Training
    drawn: TrialData

    @property
    def training_key(self) -> str:
        """The name of its training's checkpoint."""
        return training_key(self.training, self.drawn.manifest, self.drawn.index)

    def __str__(self) -> str:
        return f"{self.about['run']}, {self.about['chooses'].rpartition('.')[2]}={self.about['value']:g}"


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
        if not set(search.chooses.values()) <= set(params.runs_of_scale):
            continue
        rows, grid = _searched(params, name, drawn)
        for line in in_words(rows, grid):
            say(f"tune: {name}: {line}")
        for row in (row for row in rows if row["chosen"]):
            params = with_value(params, row["chooses"], row["value"])
    say(f"tune: {layout.TUNING_TABLE}; set what it chose in params.yaml")


def _known() -> list[Json]:
    """The rows of the table, with numbers."""
    rows = read_table(layout.TUNING_TABLE) if layout.TUNING_TABLE.is_file() else []
    return [row | {name: float(row[name]) for name in ("value", "validation_loss")} for row in rows]


def _searched(params: Params, name: str, drawn: DataOf) -> tuple[list[Json], list[float]]:
    """The rows of all values that a search tried, the best one of each key marked; and these values."""
    search = params.tune.searches[name]
    trials = {(key, value): _trial(params, name, key, value, drawn) for key in search.chooses for value in search.grid}
    for left in range(WIDENED, -1, -1):
        tried, more = sorted({value for _, value in trials}), list[float]()
        ordered = [trials[key, value] for key in search.chooses for value in tried]
        rows = with_choices([_row_of(trial) for trial in ordered])
        # Only now: two keys may choose by different models of one training.
        remove_checkpoints([layout.checkpoints() / trial.training_key for trial in ordered])
        ends = sorted({row["value"] for row in rows if row["chosen"]}) if left else []
        for value in (found for end in ends if (found := beyond(tried, end)) is not None):
            with suppress(QuorumError):  # a key cannot have it
                trials |= {(key, value): _trial(params, name, key, value, drawn) for key in search.chooses}
                more.append(value)
        if not more:
            break
        known = ", ".join(f"{value:g}" for value in tried)
        say(f"tune: {name}: the best of {known} is at an end: also {', '.join(map(str, more))}")
    others = [row for row in _known() if (row["scale"], row["search"]) != (params.scale, name)]
    write_table(layout.TUNING_TABLE, [*others, *rows], COLUMNS)
    return rows, tried


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

    None inside, and where there is no step: to or from 0.

    >>> beyond([1.0, 2.0, 4.0], 4.0), beyond([0.1, 0.2, 1.0], 0.1), beyond([1.0, 2.0, 4.0], 2.0)
    (8.0, 0.05, None)
    """
    inner = {grid[0]: grid[1], grid[-1]: grid[-2]}.get(best)
    return float(f"{best * best / inner:.3g}") if best and inner else None


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


def _trial(params: Params, search: str, key: str, value: float, drawn: DataOf) -> Trial:
    """A run's training with a value at a key, at the seed of tuning. Raises QuorumError if the run cannot have it."""
    run, changed = params.tune.searches[search].chooses[key], with_value(params, key, value)
    order = train_order(changed, run)
    if order.left_out:
        raise QuorumError(f"params.yaml: tune: {key}={value:g}: {order.left_out}; leave it out")
    if order.training is None:
        raise QuorumError(f"params.yaml: tune: {key}: run {run} trains nothing; choose another")
    if _data_orders(changed, run) != _data_orders(params, run):
        raise QuorumError(f"params.yaml: tune: {key}: changes a run's data or what is stored of them; choose another")
    training = order.training.model_copy(update={"seed": params.tune.seed, "keep_rounds": False})
    data, method, precision = drawn(run), params.runs[run].method, training.learner.precision
    tried = [without_code(training.model_dump(mode="json")), data.digest, order.evaluate, order.evaluated]
    hashes = {"code": sha256_json(training.code)[:16], "fingerprint": sha256_json(tried)[:16]}
    about = {"chooses": key, "run": run, "method": method, "value": value, "precision": precision}
    return Trial({"scale": params.scale, "search": search} | about | hashes, order, training, data)


def _data_orders(params: Params, run: str) -> tuple[PartitionOrder, EncodeOrder]:
    """The orders that draw and encode a run's setting at the seed of tuning, without test examples."""
    # Batches decide no data; that they are enough is checked where the setting is partitioned.
    name, seeds = params.runs[run].setting, [params.tune.seed]
    order = partition_order(params, name, seeds)
    order = order.model_copy(update={"take": order.take.model_copy(update={"test": None}), "batch": None})
    return order, encode_order(params, name, [run], seeds)


def _drawn(params: Params, run: str) -> TrialData:
    """Draw and encode a run's setting at the seed of tuning, without test examples."""
    name, seed = params.runs[run].setting, params.tune.seed
    order, encoding = _data_orders(params, run)
    every = examples_of(order.data, load_task(order.task).kind)
    examples = {identity: example for identity, example in every.items() if example.split != "test"}
    one = draw(name, order, examples, seed, sampled(order.data), needed=VISIBLE)
    indices, _ = encode(name, encoding, examples, {seed: one.manifest})
    index = index_of(indices[run])
    used = {i: asdict(examples[i]) for own in one.manifest.values() for split in VISIBLE for i in own[split]}
    return TrialData(one.manifest, index, sha256_json([one.manifest, used, index.digest]))


def _row_of(trial: Trial) -> Json:
    """A trial's row in the table, with numbers; one that is not there is trained and added."""
    about = trial.about
    known = [row for row in _known() if all(row[key] == about[key] for key in ("fingerprint", "chooses", "precision"))]
    if not known:
        row = about | _outcome(trial)
        write_table(layout.TUNING_TABLE, [*_known(), row | {"chosen": 0}], COLUMNS)
        return row
    if known[0]["code"] != about["code"]:
        say(f"tune: {trial}: was tried by an earlier version of this code")
    return known[0] | {key: about[key] for key in ("scale", "search")}


def _outcome(trial: Trial) -> Json:
    """Train a trial: its validation loss of the evaluated round, the mean over clients, and its rounds."""
    data, owner = trial.drawn, trial.order.evaluate or "server"
    try:
        how = data.manifest, data.index, trial.training_key, str(trial)
        progress, private = train_learner(trial.training, *how, lambda rows: None)
    except QuorumError as error:
        if error.code != "not_finite":
            raise
        say(f"tune: {trial}: diverged: {error}")
        return {"validation_loss": math.inf, "best_rounds": "", "rounds": 0, "ended": "divergence"}
    best = private.best.get(owner, {}).values()  # clients' own models may be scored together, without a best round
    losses = [one.loss for one in best]
    if trial.order.evaluated == "last":
        losses = [loss for row in progress.last if (loss := row.known_loss(owner)) is not None]
    return {
        "validation_loss": round(fmean(losses), 5),
        "best_rounds": "/".join(str(one.round) for one in best),
        "rounds": progress.round,
        "ended": "patience" if progress.stale >= trial.training.patience else "cap",
    }


def with_choices(rows: Sequence[Json]) -> list[Json]:
    """Mark the best trial of each key; the first of equal ones."""
    best: dict[str, Json] = {}
    for row in rows:
        best[row["chooses"]] = min(best.get(row["chooses"], row), row, key=itemgetter("validation_loss"))
    return [row | {"chosen": int(best[row["chooses"]] is row)} for row in rows]
