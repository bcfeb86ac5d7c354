"""Fair tuning on validation, at a seed that no table reports: learning rates, and knobs that a method has of its own.

A rate is chosen for each family of methods by the run that stands for it, from one grid for all; where the best is at
an end of the grid, all get a wider one. A knob is chosen with its family's rate. A trial is judged by the mean over
clients of the best round's validation loss of the model that its run is about. Test examples are left out before
anything is drawn, read or encoded. The table that results says what params.yaml's values were chosen from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from pipeline.corpora.example import Example
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
from pipeline.runs.aside import encode_aside
from pipeline.runs.index import Encoded, read_encoded, training_key
from pipeline.runs.meetings import train_on_meetings
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.result_files import refuse_another_precision
from pipeline.runs.training import Finished
from pipeline.runs.trials import make_missing
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table

COLUMNS = (
    *("scale", "chooses", "run", "method", "knobs", "validation_loss", "best_rounds", "rounds", "ended", "chosen"),
)
NEAR = 0.01
"""Nats a token."""
WIDENED = 4
"""So many times, at most, is a grid made wider."""
DIVERGED = "divergence"
"""How a trial ended whose loss or gradient was not finite; any other is better."""


Row = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """Setting -> a hash of all that its trainings see; run -> its examples.

    Both are read once, before the first trial: whoever plans otherwise meanwhile changes the files, and no trial.
    """

    digests: Mapping[str, str]
    encoded: Mapping[str, Encoded]


def tune() -> None:
    """Train what is not trained yet, and write reports/tables/tuning.csv.

    Raises:
        QuorumError: examples are not prepared, a value does not fit its knob, or a trial is kept in another precision.
    """
    params = _planned(read_params())
    orders_of(params, [*rate_trials(params, params.tune.rates), *knob_trials(params)])
    precision = precision_of(params)
    for trial in sorted(layout.trial("any").parent.glob("*.json")):
        refuse_another_precision(trial, read_json(trial)["precision"], precision)
    data = _encode(params)
    rates = _rates(params, data)
    _tell(rates)  # knobs take hours more
    chosen = {row["chooses"]: float(row["knobs"].partition("=")[2]) for row in rates if row["chosen"]}
    knobs = _knobs(with_learning_rates(params, chosen), data)
    _tell(knobs)
    write_table(layout.TUNING_TABLE, [*rates, *knobs], COLUMNS)
    say(f"tune: {layout.TUNING_TABLE}; set what it chose in params.yaml")


def _tell(rows: Sequence[Row]) -> None:
    for row in (row for row in rows if row["chosen"]):
        capped = " (the cap on rounds ended it)" if row["ended"] == "cap" else ""
        say(f"tune: {row['chooses']}: {row['knobs']} has the least validation loss, {row['validation_loss']}{capped}")
    for row in capped_near(rows):
        say(f"tune: {row['chooses']}: the cap on rounds ended {row['knobs']}, which is near the best: try more rounds")


def capped_near(rows: Sequence[Row]) -> list[Row]:
    """Trials that more rounds might have made the best: ended by the cap, and at most so many nats from the best."""
    best = {row["chooses"]: row["validation_loss"] for row in rows if row["chosen"]}
    return [
        row
        for row in rows
        if row["ended"] == "cap" and not row["chosen"] and row["validation_loss"] <= best[row["chooses"]] + NEAR
    ]


def _planned(params: Params) -> Params:
    """Without the families and trials of runs that have left params.yaml."""
    asked = params.tune
    gone = [run for run in (*asked.families.values(), *asked.trials) if run not in params.all_runs]
    if gone:
        say(f"tune: left out, as they are no runs of params.yaml: {', '.join(gone)}")
    families = {family: run for family, run in asked.families.items() if run not in gone}
    trials = {run: own for run, own in asked.trials.items() if run not in gone}
    return params.model_copy(update={"tune": asked.model_copy(update={"families": families, "trials": trials})})


def _rates(params: Params, data: Data) -> list[Row]:
    """The rows of all rates tried; the grid grows by a factor of two at an end that some family likes best."""
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


def _knobs(params: Params, data: Data) -> list[Row]:
    """The rows of all knobs tried; where the best of a run's one knob is at an end, a value beyond is tried, too.

    A knob may have its best at an end for good, as one that does nothing at 0, or whose range ends there: that is told.
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


def without_tests(examples: Mapping[str, Example]) -> dict[str, Example]:
    """What may be looked at while anything is still to be chosen."""
    return {identity: example for identity, example in examples.items() if example.split != "test"}


def _encode(params: Params) -> Data:
    """The manifests, stored prefixes and indices of all runs that are tried, at the seed of tuning."""
    seed = params.tune.seed
    names = dict.fromkeys([*params.tune.families.values(), *params.tune.trials])
    ids = {layout.run_id(layout.TUNE, name, seed): (name, seed) for name in names}
    examples = without_tests(examples_of(corpora_of(params, layout.TUNE)))
    digests: dict[str, str] = {}
    for run, manifest in encode_aside(params, layout.TUNE, ids, examples).items():
        setting = params.all_runs[ids[run][0]].setting
        held = [i for splits in manifest.values() for split in splits.values() for i in split]
        texts = {i: examples[i].to_json() for i in held}
        digest = backbone_digest(layout.BACKBONE)
        digests[setting] = sha256_json([manifest, texts, list(params.limits_of(setting)), digest])
    return Data(digests, {name: read_encoded(run) for run, (name, _) in ids.items()})


def _rows(params: Params, trials: Iterable[Trial], data: Data) -> list[Row]:
    orders = orders_of(params, trials)
    _try_all(params, orders, data)
    return [_row(params, trial, order, data) for trial, order in orders.items()]


def _try_all(params: Params, orders: Mapping[Trial, TrainOrder], data: Data) -> None:
    make_missing(
        {
            _kept_in(params, one, order, data): partial(_try, one, order, data.encoded[one.run])
            for one, order in orders.items()
        }
    )


def _row(params: Params, trial: Trial, order: TrainOrder, data: Data) -> Row:
    method = params.all_runs[trial.run].method
    about = {"scale": params.scale, "chooses": trial.chooses, "run": trial.run, "method": method, "knobs": str(trial)}
    return about | _outcome(params, trial, order, data)


def _kept_in(params: Params, trial: Trial, tried: TrainOrder, data: Data) -> Path:
    """Where a trial is kept: by what the training is told and by its data.

    It is committed: tuning takes hours, and goes on where another machine stopped.
    """
    assert tried.training is not None
    told = without_code(tried.training.model_dump(mode="json"))
    return layout.trial(sha256_json([told, data.digests[params.all_runs[trial.run].setting]]))


def _try(trial: Trial, tried: TrainOrder, encoded: Encoded, kept: Path) -> None:
    """Train, and keep what was found, so that the checkpoint need not be."""
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
    write_json(kept, about | found)
    remove_checkpoints([layout.checkpoints() / key])


def _found(finished: Finished, patience: int) -> dict[str, Any]:
    """What is kept of a trial: of each model's clients the best losses and rounds."""
    owners = {
        owner: {"losses": [one.loss for one in best.values()], "best": [one.round for one in best.values()]}
        for owner, best in finished.private.best.items()
    }
    ended = "patience" if finished.progress.stale >= patience else "cap"
    return {"owners": owners, "rounds": finished.progress.round, "ended": ended}


def _outcome(params: Params, trial: Trial, tried: TrainOrder, data: Data) -> Row:
    """A trial's validation loss and best rounds, as they were kept."""
    assert tried.training is not None
    assert tried.evaluate is not None
    kept = _kept_in(params, trial, tried, data)
    outcome = read_json(kept, remedy=f"delete {kept} and run again")
    if outcome["code"] != sha256_json(tried.training.code):
        say(f"tune: {trial.run}, {trial}: was tried by an earlier version of this code")
    if outcome["ended"] == DIVERGED:
        return {"validation_loss": math.inf, "best_rounds": "", "rounds": outcome["rounds"], "ended": DIVERGED}
    own = outcome["owners"][tried.evaluate]
    best = "/".join(map(str, own["best"]))
    loss = round(fmean(own["losses"]), 5)
    return {"validation_loss": loss, "best_rounds": best, "rounds": outcome["rounds"], "ended": outcome["ended"]}


def with_choices(rows: Sequence[Row]) -> list[Row]:
    """Mark the best trial of each choice; of several that are as good, the first."""
    best: dict[str, Row] = {}
    for row in rows:
        known = best.setdefault(row["chooses"], row)
        if row["validation_loss"] < known["validation_loss"]:
            best[row["chooses"]] = row
    return [row | {"chosen": int(best[row["chooses"]] is row)} for row in rows]
