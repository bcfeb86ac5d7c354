"""Fair tuning: every method with knobs of its own gets as many trials, on validation, at a seed that no table reports.

Each trial is the run with some knobs changed; it is judged by the mean over clients of the best round's validation
loss. The test set is never read. The table that results says what params.yaml's values were chosen from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from pipeline.errors import QuorumError
from pipeline.plan.orders import TrainOrder
from pipeline.plan.run import Run
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import training_order, unfit
from pipeline.runs.index import read_encoded, training_key
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.training import train
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import first_problem
from pipeline.workspace.tables import write_table

COLUMNS = ("run", "method", "knobs", "validation_loss", "best_rounds", "chosen")


@dataclass(frozen=True)
class Trial:
    """A run with some of its knobs changed."""

    run: str
    knobs: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.knobs)


def trials_of(params: Params) -> Iterator[Trial]:
    for run, settings in params.search.trials.items():
        if run not in params.all_runs:
            say(f"search: {run} is no run of params.yaml; left out")
            continue
        for knobs in settings:
            yield Trial(run, tuple(knobs.items()))


def with_trial(params: Params, trial: Trial) -> Params:
    """The same parameters with the trial's knobs set in its run."""
    rows = {"runs": params.runs, "more_runs": params.more_runs}
    group = "runs" if trial.run in params.runs else "more_runs"
    row = Run.model_validate(params.all_runs[trial.run].model_dump(exclude_unset=True) | dict(trial.knobs))
    changed = {name: row if name == trial.run else other for name, other in rows[group].items()}
    return Params.model_validate(params.model_dump(by_alias=True, exclude_unset=True) | {group: changed})


def search() -> None:
    """Train what is not trained yet, and write reports/tables/search.csv.

    Raises:
        QuorumError: a run's setting is not encoded, or a value does not fit its knob.
    """
    params = read_params()
    rows = with_choices([_row(params, trial, tried) for trial, tried in orders_of(params).items()])
    write_table(layout.SEARCH_TABLE, rows, COLUMNS)
    for row in rows:
        if row["chosen"]:
            say(f"search: {row['run']}: {row['knobs']} has the least validation loss, {row['validation_loss']}")
    say(f"search: {layout.SEARCH_TABLE}; set what it chose in params.yaml")


def orders_of(params: Params) -> dict[Trial, TrainOrder]:
    """Every trial's training, so that a wrong knob of the last is found before the first has run.

    Raises:
        QuorumError: a trial's knob is unknown or out of range, or its run trains nothing.
    """
    return {trial: _order(params, trial) for trial in trials_of(params)}


def _order(params: Params, trial: Trial) -> TrainOrder:
    try:
        changed = with_trial(params, trial)
        order = training_order(changed, trial.run, params.search.seed)
        if reason := unfit(changed, trial.run):
            raise QuorumError(f"{reason}; leave it out")
    except ValidationError as error:
        wrong = f"params.yaml: search.trials.{trial.run}, {trial}: {first_problem(error)}; correct it"
        raise QuorumError(wrong) from None
    except (QuorumError, ValueError) as error:
        # The message is about the run with the trial's knobs in it.
        raise QuorumError(f"params.yaml: search.trials.{trial.run}, {trial}: {error}") from None
    if order.training is None:
        raise QuorumError(f"params.yaml: search.trials.{trial.run}: trains nothing; leave it out")
    return order


def _row(params: Params, trial: Trial, tried: TrainOrder) -> dict[str, Any]:
    return {
        "run": trial.run,
        "method": params.all_runs[trial.run].method,
        "knobs": str(trial),
        **_outcome(params, trial, tried),
    }


def _outcome(params: Params, trial: Trial, tried: TrainOrder) -> dict[str, Any]:
    """The trial's validation loss and best rounds; kept, so that its checkpoint need not be."""
    assert tried.training is not None
    assert tried.evaluate is not None
    group = layout.MAIN if trial.run in params.runs else layout.MORE
    encoded = read_encoded(layout.run_id(group, trial.run, params.seeds[0]))
    key = training_key(tried.training, encoded)
    kept = layout.trial(sha256_json([key, tried.evaluate]))
    if not kept.is_file():
        finished = train(tried.training, encoded, key, f"{trial.run}, {trial}", lambda rows: None)
        best = finished.private.best[tried.evaluate].values()
        loss = round(fmean(one.loss for one in best), 5)
        write_json(kept, {"validation_loss": loss, "best_rounds": "/".join(str(one.round) for one in best)})
        remove_checkpoints([layout.checkpoints() / key])
    outcome: dict[str, Any] = read_json(kept, remedy=f"delete {kept} and run again")
    return outcome


def with_choices(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark each run's best trial."""
    least = {row["run"]: min(r["validation_loss"] for r in rows if r["run"] == row["run"]) for row in rows}
    return [row | {"chosen": int(row["validation_loss"] == least[row["run"]])} for row in rows]
