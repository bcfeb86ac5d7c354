"""What knobs do and how they were chosen: the sweeps of τ and λ, the trials of `make search`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pipeline.evaluation.scores import MEAN
from pipeline.federated.history import best_validation_loss
from pipeline.plan.orders import RunRow, TrainKnobs
from pipeline.report.canvas import Canvas
from pipeline.report.figures import sweep
from pipeline.runs.results import Results, knob_of, share_of_tokens, weight_of_all


def knob_sweep(canvas: Canvas, results: Results, runs: Sequence[str], knob: str, name: str, usual: str) -> list[Markup]:
    """A knob of AdaFedSelectKD over the runs that set it.

    Args:
        usual: the run that has the knob's value as it is elsewhere.
    """
    known = [run for run in runs if run in results.metrics and not math.isnan(knob_of(results, run, knob))]
    points = sorted((_point(results, run, knob) for run in known), key=lambda point: point.value)
    if len(points) < 2:
        return []
    best = min(points, key=lambda point: point.validation)
    chosen = knob_of(results, usual, knob) if usual in results.rows else math.nan
    dashed = "" if math.isnan(chosen) else "; the dashed line is the value used elsewhere"
    caption = (
        f"{name} against validation loss (which would choose {best.label}) and test scores, mean over clients "
        f"with 95% intervals{dashed}. Runs: {', '.join(known)}."
    )
    return [canvas.place(sweep.draw(points, name, chosen), f"sweep_{knob}", caption)]


def _point(results: Results, run: str, knob: str) -> sweep.Point:
    value = knob_of(results, run, knob)
    own = results.metrics[run][MEAN]

    def triple(metric: str) -> tuple[float, float, float]:
        return own[metric], own[f"{metric}_low"], own[f"{metric}_high"]

    average = triple("average") if "average" in own else None
    return sweep.Point(value, f"{value:.3g}", best_validation_loss(results.histories[run]), triple("loss"), average)


def scaled_weight(results: Results, selective: str, scaled: str) -> list[Markup]:
    """Whether the control's λ is what it should be: λ times the share of tokens that the selective run distilled."""
    if selective not in results.histories or scaled not in results.rows:
        return []
    share, weight = share_of_tokens(results, selective), knob_of(results, selective, "lambda")
    wanted, own = weight_of_all(results, selective), knob_of(results, scaled, "lambda")
    text = (
        '<p class="note">{} distilled {:.1f}% of target tokens, mean over clients and rounds: {:g} × {:.3f} = {:.3f}; '
        "{} has λ = {:g}.</p>"
    )
    return [Markup(text).format(selective, 100 * share, weight, share, wanted, scaled, own)]


def tuned(results: Results, trials: Sequence[Mapping[str, str]], runs: Sequence[str]) -> list[Markup]:
    """What each run's knobs were chosen from, whether it has them, and whether a wider search might find better.

    Args:
        trials: rows of search.csv.
    """
    searched = {run: own for run in runs if (own := [row for row in trials if row["run"] == run])}
    told = [_chosen(run, own, results.rows.get(run, ())) for run, own in searched.items()]
    text = '<p class="note">Chosen on validation, at a seed of its own (reports/tables/search.csv): {}.</p>'
    return [Markup(text).format("; ".join(told))] if told else []


def _chosen(run: str, trials: Sequence[Mapping[str, str]], made: Sequence[RunRow]) -> str:
    best = next(row for row in trials if row["chosen"] == "1")
    edge = ", the end of what was tried" if _is_at_an_end(best["knobs"], [row["knobs"] for row in trials]) else ""
    training = made[0].training if made else None
    other = "" if training is None or _has(training, best["knobs"]) else " (the run has another)"
    return f"{run} {best['knobs']} of {len(trials)} trials{edge}{other}"


def _has(training: TrainKnobs, knobs: str) -> bool:
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
