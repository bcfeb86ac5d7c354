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
    """A run with some of its knobs changed; `chooses` names the family or the run whose values the trials choose."""

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
    """Every run's trials of its own knobs."""
    for run, settings in params.tune.trials.items():
        for knobs in settings:
            yield Trial(run, run, tuple(knobs.items()))


def widened(grid: Sequence[float], best: Iterable[float]) -> list[float]:
    """The same ascending grid, with one more value, by a factor of two, at each end that is best for a family."""
    ends = set(best)
    below = [grid[0] / 2] if grid[0] in ends else []
    above = [2 * grid[-1]] if grid[-1] in ends else []
    return [*below, *grid, *above]


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


def further(params: Params, trials: Sequence[Trial], best: Mapping[str, Trial]) -> list[Trial]:
    """One more trial for each run whose only knob is best at an end of its grid, if the knob may have the next value.

    Args:
        best: run -> its best trial.
    """
    found = []
    for trial in at_an_end(trials, best):
        ((knob, value),) = trial.knobs
        more = beyond(_grid(trials, trial.run), value)
        if more is not None:
            found.append(Trial(trial.run, trial.run, ((knob, more),)))
    return [trial for trial in found if trial not in trials and _fits(params, trial)]


def at_an_end(trials: Sequence[Trial], best: Mapping[str, Trial]) -> list[Trial]:
    """The best trials that lie at an end of their grid, of the runs with one knob, a number."""
    found = []
    for run, trial in best.items():
        own = [one for one in trials if one.run == run]
        if all(len(one.knobs) == 1 and not isinstance(one.knobs[0][1], str) for one in own):
            grid = _grid(trials, run)
            found += [trial] if trial.knobs[0][1] in (grid[0], grid[-1]) else []
    return found


def _grid(trials: Sequence[Trial], run: str) -> list[float]:
    """The values of a run's one knob, ascending."""
    return sorted(trial.knobs[0][1] for trial in trials if trial.run == run)


def _fits(params: Params, trial: Trial) -> bool:
    """Whether the knob may have the value."""
    try:
        _order(params, trial)
    except QuorumError:
        return False
    return True


def with_learning_rates(params: Params, chosen: Mapping[str, float]) -> Params:
    """The same parameters with the chosen rates of families."""
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
    """Trial -> its training, for all trials: an error in the last one is raised before the first one trains.

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
        raise QuorumError(f"{where}: {error}") from None
    if order.training is None:
        raise QuorumError(f"{where}: trains nothing; leave it out")
    return order
