"""Fair tuning: every method with a knob of its own gets as many trials, on validation, at a seed that no table reports.

Each trial is the run with one knob changed; it is judged by the mean over clients of the best round's validation
loss. The test set is never read. The table that results says what params.yaml's values were chosen from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pipeline import layout
from pipeline.encoded import read_encoded, training_key
from pipeline.knobs import Run
from pipeline.params import Params, read_params
from pipeline.progress import say
from pipeline.spec import TrainStageSpec
from pipeline.stages.plan import training_of
from pipeline.stages.train import train
from pipeline.tables import write_table

COLUMNS = ("run", "method", "knob", "value", "validation_loss", "best_rounds", "chosen", "in_params")
TABLE = layout.TABLES / "search.csv"


@dataclass(frozen=True)
class Trial:
    """A run with one knob at one value."""

    run: str
    knob: str
    value: Any


def trials_of(params: Params) -> Iterator[Trial]:
    for run, knobs in params.search.trials.items():
        if run not in params.all_runs:
            say(f"search: {run} is no run of params.yaml; left out")
            continue
        for knob, values in knobs.items():
            for value in values:
                yield Trial(run, knob, value)


def with_trial(params: Params, trial: Trial) -> Params:
    """The same parameters with the trial's knob set in its run."""
    rows = {"runs": params.runs, "more_runs": params.more_runs}
    group = "runs" if trial.run in params.runs else "more_runs"
    row = Run.model_validate(params.all_runs[trial.run].model_dump() | {trial.knob: trial.value})
    changed = {name: row if name == trial.run else other for name, other in rows[group].items()}
    return params.model_copy(update={group: changed})


def search() -> None:
    """Train what is not trained yet, and write reports/tables/search.csv.

    Raises:
        QuorumError: a run's setting is not encoded, or a value does not fit its knob.
    """
    params = read_params()
    rows: list[dict[str, Any]] = []
    for trial in trials_of(params):
        spec = training_of(with_trial(params, trial), trial.run, params.search.seed)
        assert spec.training is not None
        group = layout.MAIN if trial.run in params.runs else layout.MORE
        encoded = read_encoded(layout.run_id(group, trial.run, params.seeds[0]))
        label = f"{trial.run}, {trial.knob} {trial.value}"
        finished = train(spec.training, encoded, training_key(spec.training, encoded), label, lambda rows: None)
        best = finished.best[_judged(spec)]
        rows.append(
            {
                "run": trial.run,
                "method": params.all_runs[trial.run].method,
                "knob": trial.knob,
                "value": trial.value,
                "validation_loss": round(fmean(one.loss for one in best.values()), 5),
                "best_rounds": "/".join(str(one.round) for one in best.values()),
                "in_params": int(_set(params, trial) == trial.value),
            }
        )
    write_table(TABLE, with_choices(rows), COLUMNS)
    for row in rows:
        if row["chosen"]:
            say(f"search: {row['run']}: {row['knob']} {row['value']} has the least loss, {row['validation_loss']}")
    say(f"search: {TABLE}; set what it chose in params.yaml")


def with_choices(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the best value of each run's knob."""
    for row in rows:
        rivals = [r["validation_loss"] for r in rows if (r["run"], r["knob"]) == (row["run"], row["knob"])]
        row["chosen"] = int(row["validation_loss"] == min(rivals))
    return rows


def _judged(spec: TrainStageSpec) -> Any:
    return spec.evaluate


def _set(params: Params, trial: Trial) -> Any:
    """What params.yaml has for the knob now: the run's own value, or the common one."""
    own = params.all_runs[trial.run].model_extra or {}
    return own.get(trial.knob, params.model_dump(by_alias=True).get(trial.knob))
