"""Fair tuning: every method with knobs of its own gets as many trials, on validation, at a seed that no table reports.

Each trial is the run with some knobs changed; it is judged by the mean over clients of the best round's validation
loss. The test set is never read. The table that results says what params.yaml's values were chosen from.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pipeline import layout
from pipeline.encoded import read_encoded, training_key
from pipeline.files import locked, read_json, sha256_json, write_json
from pipeline.knobs import Run
from pipeline.params import Params, read_params
from pipeline.progress import say
from pipeline.stages.plan import training_of
from pipeline.stages.train import train
from pipeline.tables import write_table

COLUMNS = ("run", "method", "knobs", "validation_loss", "best_rounds", "chosen", "in_params")
TABLE = layout.TABLES / "search.csv"


@dataclass(frozen=True)
class Trial:
    """A run with some of its knobs changed."""

    run: str
    knobs: Mapping[str, Any]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.knobs.items())


def trials_of(params: Params) -> Iterator[Trial]:
    for run, settings in params.search.trials.items():
        if run not in params.all_runs:
            say(f"search: {run} is no run of params.yaml; left out")
            continue
        for knobs in settings:
            yield Trial(run, knobs)


def with_trial(params: Params, trial: Trial) -> Params:
    """The same parameters with the trial's knobs set in its run."""
    rows = {"runs": params.runs, "more_runs": params.more_runs}
    group = "runs" if trial.run in params.runs else "more_runs"
    row = Run.model_validate(params.all_runs[trial.run].model_dump() | dict(trial.knobs))
    changed = {name: row if name == trial.run else other for name, other in rows[group].items()}
    return params.model_copy(update={group: changed})


def search() -> None:
    """Train what is not trained yet, and write reports/tables/search.csv.

    Raises:
        QuorumError: a run's setting is not encoded, or a value does not fit its knob.
    """
    params = read_params()
    rows = with_choices([_row(params, trial) for trial in trials_of(params)])
    write_table(TABLE, rows, COLUMNS)
    for row in rows:
        if row["chosen"]:
            say(f"search: {row['run']}: {row['knobs']} has the least validation loss, {row['validation_loss']}")
    say(f"search: {TABLE}; set what it chose in params.yaml")


def _row(params: Params, trial: Trial) -> dict[str, Any]:
    seed = params.search.seed
    tried = training_of(with_trial(params, trial), trial.run, seed)
    return {
        "run": trial.run,
        "method": params.all_runs[trial.run].method,
        "knobs": str(trial),
        **_outcome(params, trial, tried),
        "in_params": int(tried == training_of(params, trial.run, seed)),
    }


def _outcome(params: Params, trial: Trial, tried: Any) -> dict[str, Any]:
    """The trial's validation loss and best rounds; kept, so that its checkpoint need not be."""
    group = layout.MAIN if trial.run in params.runs else layout.MORE
    encoded = read_encoded(layout.run_id(group, trial.run, params.seeds[0]))
    key = training_key(tried.training, encoded)
    kept = layout.work() / "search" / f"{sha256_json([key, tried.evaluate])}.json"
    if not kept.is_file():
        with locked(layout.checkpoints() / f"{key}.lock"):
            finished = train(tried.training, encoded, key, f"{trial.run}, {trial}", lambda rows: None)
        best = finished.best[tried.evaluate].values()
        loss = round(fmean(one.loss for one in best), 5)
        write_json(kept, {"validation_loss": loss, "best_rounds": "/".join(str(one.round) for one in best)})
        shutil.rmtree(layout.checkpoints() / key, ignore_errors=True)
    outcome: dict[str, Any] = read_json(kept, remedy=f"delete {kept} and run again")
    return outcome


def with_choices(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark each run's best trial."""
    least = {row["run"]: min(r["validation_loss"] for r in rows if r["run"] == row["run"]) for row in rows}
    return [row | {"chosen": int(row["validation_loss"] == least[row["run"]])} for row in rows]
