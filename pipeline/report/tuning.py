"""How knobs were chosen: the trials of `make search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pipeline.plan.orders import RunRow, TrainingKnobs
from pipeline.report.page import piece
from pipeline.runs.results import Results


def tuned(results: Results, trials: Sequence[Mapping[str, str]], runs: Sequence[str]) -> list[Markup]:
    """What each run's knobs were chosen from, whether it has them, and whether a wider search might find better.

    Args:
        trials: rows of search.csv.
    """
    searched = {run: own for run in runs if (own := [row for row in trials if row["run"] == run])}
    told = [_chosen(run, own, results.rows.get(run, ())) for run, own in searched.items()]
    return [piece("chosen", trials="; ".join(told))] if told else []


def _chosen(run: str, trials: Sequence[Mapping[str, str]], made: Sequence[RunRow]) -> str:
    best = next(row for row in trials if row["chosen"] == "1")
    edge = ", the end of what was tried" if _is_at_an_end(best["knobs"], [row["knobs"] for row in trials]) else ""
    training = made[0].training if made else None
    other = "" if training is None or _has(training, best["knobs"]) else " (the run has another)"
    return f"{run} {best['knobs']} of {len(trials)} trials{edge}{other}"


def _has(training: TrainingKnobs, knobs: str) -> bool:
    """Whether a training has the knobs of a trial, as in `tau=5 lambda=0.2`."""
    known = training.model_dump() | training.hyperparameters
    pairs = [knob.partition("=")[::2] for knob in knobs.split()]
    return all(_same(value, str(known.get(name))) for name, value in pairs)


def _same(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def _is_at_an_end(best: str, tried: Sequence[str]) -> bool:
    """Whether one knob was tried, as in `mu=0.1`, and a value beyond the best one might be better."""
    if any(len(knobs.split()) > 1 for knobs in tried):
        return False
    try:
        values = {knob: float(knob.partition("=")[2]) for knob in tried}
    except ValueError:  # no numbers, so there is no end
        return False
    return values[best] in (min(values.values()), max(values.values()))
