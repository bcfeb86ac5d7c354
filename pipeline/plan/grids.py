"""What `tune` tries: grids of rates for families of methods, and of knobs for single runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from pipeline.errors import QuorumError
from pipeline.plan.orders import TrainOrder
from pipeline.plan.run import Run
from pipeline.plan.schema import Params
from pipeline.plan.training import training_order, unfit
from pipeline.workspace.record import first_problem

RATE = "learning_rate"


@dataclass(frozen=True)
class Trial:
    """A run with some of its knobs changed; `chooses` names what is chosen by it: a family's rate, or a run's knobs."""

    chooses: str
    run: str
    knobs: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.knobs)


def rate_trials(params: Params, rates: Iterable[float]) -> Iterator[Trial]:
    """Every family's run at every rate of the grid."""
    for family, run in params.tune.families.items():
        for rate in rates:
            yield Trial(family, run, ((RATE, rate),))


def knob_trials(params: Params) -> Iterator[Trial]:
    for run, settings in params.tune.trials.items():
        for knobs in settings:
            yield Trial(run, run, tuple(knobs.items()))


def widened(grid: Sequence[float], best: Iterable[float]) -> list[float]:
    """The same ascending grid, with one more value, by a factor of two, at each end that is best for a family."""
    liked = set(best)
    below = [grid[0] / 2] if grid[0] in liked else []
    above = [2 * grid[-1]] if grid[-1] in liked else []
    return [*below, *grid, *above]


def beyond(trials: Sequence[Trial], best: str) -> list[Trial]:
    """The next value of one run's knob, by the step that its grid has there; nothing of several knobs, or of words.

    Args:
        trials: all of the run.
        best: how the best of them is written.
    """
    if len(trials) < 2 or any(len(trial.knobs) > 1 or isinstance(trial.knobs[0][1], str) for trial in trials):
        return []
    run, knob = trials[0].run, trials[0].knobs[0][0]
    values = sorted(trial.knobs[0][1] for trial in trials)
    ends = {f"{knob}={values[0]}": (values[0], values[1]), f"{knob}={values[-1]}": (values[-1], values[-2])}
    if best not in ends:
        return []
    end, inner = ends[best]
    return [Trial(run, run, ((knob, float(f"{end * end / inner:.3g}")),))]


def with_learning_rates(params: Params, chosen: Mapping[str, float]) -> Params:
    """The same parameters with the families' rates as they were chosen."""
    rates = params.learning_rates.model_dump() | dict(chosen)
    return _changed(params, learning_rate=None, learning_rates=rates)


def with_trial(params: Params, trial: Trial) -> Params:
    """The same parameters with the trial's knobs set in its run."""
    rows = {"runs": params.runs, "more_runs": params.more_runs}
    group = "runs" if trial.run in params.runs else "more_runs"
    row = Run.model_validate(params.all_runs[trial.run].model_dump(exclude_unset=True) | dict(trial.knobs))
    return _changed(
        params, **{group: {name: row if name == trial.run else other for name, other in rows[group].items()}}
    )


def _changed(params: Params, **changes: Any) -> Params:
    return Params.model_validate(params.model_dump(by_alias=True, exclude_unset=True) | changes)


def orders_of(params: Params, trials: Iterable[Trial]) -> dict[Trial, TrainOrder]:
    """Every trial's training, so that a wrong knob of the last is found before the first has run.

    Raises:
        QuorumError: a trial's knob is unknown or out of range, or its run trains nothing.
    """
    return {trial: _order(params, trial) for trial in trials}


def _order(params: Params, trial: Trial) -> TrainOrder:
    where = f"params.yaml: tune, {trial.run}, {trial}"
    try:
        changed = with_trial(params, trial)
        order = training_order(changed, trial.run, params.tune.seed)
        if reason := unfit(changed, trial.run):
            raise QuorumError(f"{reason}; leave it out")
    except ValidationError as error:
        raise QuorumError(f"{where}: {first_problem(error)}; correct it") from None
    except (QuorumError, ValueError) as error:
        # The message is about the run with the trial's knobs in it.
        raise QuorumError(f"{where}: {error}") from None
    if order.training is None:
        raise QuorumError(f"{where}: trains nothing; leave it out")
    return order
