"""Fair tuning on validation, at a seed that no table reports: learning rates, and the knobs of single methods.

One run represents each family of methods and chooses its rate, from one grid for all families. If a family's best rate
is at an end of the grid, the grid is widened for all. A knob is chosen at its family's rate. A trial's loss is the
validation loss of its run's model in the best round, averaged over clients. Test examples are left out before anything
is drawn, read or encoded. The resulting table shows from which values those of params.yaml were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from pipeline.corpora.prepared import examples_of
from pipeline.errors import QuorumError
from pipeline.model.loading import backbone_digest
from pipeline.plan.code import without_code
from pipeline.plan.grids import (
    Trial,
    at_an_end,
    further,
    knob_trials,
    orders_of,
    rate_trials,
    widened,
    with_learning_rates,
)
from pipeline.plan.orders import TrainOrder
from pipeline.plan.resolve import corpora_of
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import precision_of
from pipeline.runs.index import Encoded, read_encoded, training_key
from pipeline.runs.meetings import train_on_meetings
from pipeline.runs.preparing import partition_and_encode
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.result_files import refuse_another_precision
from pipeline.runs.training import Finished
from pipeline.runs.trials import make_missing, without_tests
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table

COLUMNS = (
    *("scale", "chooses", "run", "method", "knobs", "validation_loss", "best_rounds", "rounds", "ended", "chosen"),
)
NEAR = 0.01
"""Trials within this many nats a token of the best are near it."""
WIDENED = 4
"""How often a grid is widened, at most."""
DIVERGED = "divergence"
"""How a trial ended whose loss or gradient was not finite; every other trial is better."""


Row = dict[str, Any]


@dataclass(frozen=True)
class TuningData:
    """Setting -> a hash of its trainings' data; run -> its examples.

    Both are read once, before the first trial, so that a new plan meanwhile changes no trial.
    """

    digests: Mapping[str, str]
    encoded: Mapping[str, Encoded]


def tune() -> None:
    """Train the missing trials, and write reports/tables/tuning.csv.

    Raises:
        QuorumError: examples are not prepared, a value does not fit its knob, or a trial was run in another precision.
    """
    params = _planned(read_params())
    orders_of(params, [*rate_trials(params, params.tune.rates), *knob_trials(params)])
    precision = precision_of(params)
    for trial in sorted(layout.trial("any").parent.glob("*.json")):
        refuse_another_precision(trial, read_json(trial)["precision"], precision)
    data = _encode(params)
    rates = _rates(params, data)
    _report(rates)  # knobs take hours more
    chosen = {row["chooses"]: float(row["knobs"].partition("=")[2]) for row in rates if row["chosen"]}
    knobs = _knobs(with_learning_rates(params, chosen), data)
    _report(knobs)
    write_table(layout.TUNING_TABLE, [*rates, *knobs], COLUMNS)
    say(f"tune: {layout.TUNING_TABLE}; set what it chose in params.yaml")


def _report(rows: Sequence[Row]) -> None:
    for row in (row for row in rows if row["chosen"]):
        capped = " (the cap on rounds ended it)" if row["ended"] == "cap" else ""
        say(f"tune: {row['chooses']}: {row['knobs']} has the least validation loss, {row['validation_loss']}{capped}")
    for row in capped_near(rows):
        say(f"tune: {row['chooses']}: the cap on rounds ended {row['knobs']}, which is near the best: try more rounds")


def capped_near(rows: Sequence[Row]) -> list[Row]:
    """Find trials that might be best with more rounds: ended by the cap, within `NEAR` of the best loss."""
    best = {row["chooses"]: row["validation_loss"] for row in rows if row["chosen"]}
    return [
        row
        for row in rows
        if row["ended"] == "cap" and not row["chosen"] and row["validation_loss"] <= best[row["chooses"]] + NEAR
    ]


def _planned(params: Params) -> Params:
    """Leave out families and trials of runs that are no longer in params.yaml."""
    tune_params = params.tune
    gone = [run for run in (*tune_params.families.values(), *tune_params.trials) if run not in params.all_runs]
    if gone:
        say(f"tune: left out, as they are no runs of params.yaml: {', '.join(gone)}")
    families = {family: run for family, run in tune_params.families.items() if run not in gone}
    trials = {run: own for run, own in tune_params.trials.items() if run not in gone}
    return params.model_copy(update={"tune": tune_params.model_copy(update={"families": families, "trials": trials})})


def _rates(params: Params, data: TuningData) -> list[Row]:
    """The rows of all rates tried; the grid grows by a factor of two at an end that is best for some family."""
    if not params.tune.families:
        return []
    grid = sorted(params.tune.rates)
    for _ in range(WIDENED + 1):
        rows = with_choices(_rows(params, rate_trials(params, grid), data))
        best = {float(row["knobs"].partition("=")[2]) for row in rows if row["chosen"]}
        wider = widened(grid, best)
        if wider == grid:
            return rows
        say(f"tune: the best of a family is at an end of {', '.join(map(str, grid))}: all get a wider grid")
        grid = wider
    raise QuorumError(f"params.yaml: tune.rates: {WIDENED} times wider, and still the best is at an end; move the grid")


def _knobs(params: Params, data: TuningData) -> list[Row]:
    """The rows of all knobs tried; if the best value of a run's only knob is at an end, a value beyond is tried, too.

    A knob whose best value stays at an end is reported: its range may end there, or it may have no effect at 0.
    """
    trials = list(dict.fromkeys(knob_trials(params)))
    for left in range(WIDENED, -1, -1):
        rows = with_choices(_rows(params, trials, data))
        best = {one.run: one for one, row in zip(trials, rows, strict=True) if row["chosen"]}
        more = further(params, trials, best) if left else []
        if not more:
            break
        say(f"tune: the best is at an end: also {'; '.join(f'{trial.run} {trial}' for trial in more)}")
        trials += more
    for trial in at_an_end(trials, best):
        say(f"tune: {trial.run}: the best, {trial}, is at an end of what was tried")
    return rows


def _encode(params: Params) -> TuningData:
    """Partition and encode all runs that are tried, at the seed of tuning."""
    seed = params.tune.seed
    names = dict.fromkeys([*params.tune.families.values(), *params.tune.trials])
    ids = {layout.run_id(layout.TUNE, name, seed): (name, seed) for name in names}
    examples = without_tests(examples_of(corpora_of(params, layout.TUNE), load_task(TASKS[params.task]).kind))
    digests: dict[str, str] = {}
    for run, manifest in partition_and_encode(params, layout.TUNE, ids, examples).items():
        setting = params.all_runs[ids[run][0]].setting
        used = [i for splits in manifest.values() for split in splits.values() for i in split]
        texts = {i: asdict(examples[i]) for i in used}
        digest = backbone_digest(layout.BACKBONE)
        digests[setting] = sha256_json([manifest, texts, list(params.limits_of(setting)), digest])
    return TuningData(digests, {name: read_encoded(run) for run, (name, _) in ids.items()})


def _rows(params: Params, trials: Iterable[Trial], data: TuningData) -> list[Row]:
    orders = orders_of(params, trials)
    _try_all(params, orders, data)
    return [_row(params, trial, order, data) for trial, order in orders.items()]


def _try_all(params: Params, orders: Mapping[Trial, TrainOrder], data: TuningData) -> None:
    make_missing(
        {
            _file_of(params, one, order, data): partial(_try, one, order, data.encoded[one.run])
            for one, order in orders.items()
        }
    )


def _row(params: Params, trial: Trial, order: TrainOrder, data: TuningData) -> Row:
    method = params.all_runs[trial.run].method
    about = {"scale": params.scale, "chooses": trial.chooses, "run": trial.run, "method": method, "knobs": str(trial)}
    return about | _outcome(params, trial, order, data)


def _file_of(params: Params, trial: Trial, tried: TrainOrder, data: TuningData) -> Path:
    """A trial's file, by a hash of its training's knobs and data.

    It is committed: tuning takes hours, and can continue on another machine.
    """
    assert tried.training is not None
    knobs = without_code(tried.training.model_dump(mode="json"))
    return layout.trial(sha256_json([knobs, data.digests[params.all_runs[trial.run].setting]]))


def _try(trial: Trial, tried: TrainOrder, encoded: Encoded, file: Path) -> None:
    """Train, write the outcome, and remove the checkpoint."""
    assert tried.training is not None
    key = training_key(tried.training, encoded)
    about = {
        "run": trial.run,
        "knobs": str(trial),
        "code": sha256_json(tried.training.code),
        "precision": tried.training.precision,
    }
    try:
        finished = train_on_meetings(tried.training, encoded, key, f"{trial.run}, {trial}", lambda rows: None)
        found = _found(finished, tried.training.patience)
    except QuorumError as error:
        if error.code != "not_finite":
            raise
        say(f"tune: {trial.run}, {trial}: diverged: {error}")
        found = {"owners": {}, "rounds": 0, "ended": DIVERGED}
    write_json(file, about | found)
    remove_checkpoints([layout.checkpoints() / key])


def _found(finished: Finished, patience: int) -> dict[str, Any]:
    """A trial's outcome: for each model, its clients' best losses and rounds."""
    owners = {
        owner: {"losses": [one.loss for one in best.values()], "best": [one.round for one in best.values()]}
        for owner, best in finished.private.best.items()
    }
    ended = "patience" if finished.progress.stale >= patience else "cap"
    return {"owners": owners, "rounds": finished.progress.round, "ended": ended}


def _outcome(params: Params, trial: Trial, tried: TrainOrder, data: TuningData) -> Row:
    """A trial's validation loss and best rounds, from its file."""
    assert tried.training is not None
    assert tried.evaluate is not None
    file = _file_of(params, trial, tried, data)
    outcome = read_json(file, remedy=f"delete {file} and run again")
    if outcome["code"] != sha256_json(tried.training.code):
        say(f"tune: {trial.run}, {trial}: was tried by an earlier version of this code")
    if outcome["ended"] == DIVERGED:
        return {"validation_loss": math.inf, "best_rounds": "", "rounds": outcome["rounds"], "ended": DIVERGED}
    own = outcome["owners"][tried.evaluate]
    best = "/".join(map(str, own["best"]))
    loss = round(fmean(own["losses"]), 5)
    return {"validation_loss": loss, "best_rounds": best, "rounds": outcome["rounds"], "ended": outcome["ended"]}


def with_choices(rows: Sequence[Row]) -> list[Row]:
    """Mark the best trial of each choice; the first of equal ones."""
    best: dict[str, Row] = {}
    for row in rows:
        known = best.setdefault(row["chooses"], row)
        if row["validation_loss"] < known["validation_loss"]:
            best[row["chooses"]] = row
    return [row | {"chosen": int(best[row["chooses"]] is row)} for row in rows]
