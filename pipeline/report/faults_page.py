"""The page of an experiment on faults: dropout, stragglers and poisoned clients, means over seeds with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.intervals import of_few
from pipeline.plan.orders import ReportOrder
from pipeline.report.figures.bars import draw_defences
from pipeline.report.figures.curves import draw_by_time
from pipeline.report.figures.intervals import draw_forest
from pipeline.report.page import Canvas, page
from pipeline.tasks.task import Metric

POISONED = {"clean": "none", "one": "one of ten", "two": "two of ten"}
DEFENCES = {
    "mean": "mean",
    "median": "median",
    "trimmed": "trimmed mean",
    "clipped": "norm clipping",
    "krum": "multi-Krum",
}
Row = dict[str, str | float]


@dataclass(frozen=True)
class AtSeed:
    """A run at one seed: its test score in points, its rounds' losses and times, and its faults.

    `losses`: development loss, nats an item. `clock`: simulated seconds since the training began. `events`: kind ->
    its number.
    """

    score: float
    losses: Sequence[float]
    clock: Sequence[float]
    events: Mapping[str, int]


Outcomes = Mapping[str, Mapping[int, AtSeed]]
"""Run -> seed -> its results."""


def row_of(run: str, seeds: Mapping[int, AtSeed], against: Mapping[int, AtSeed]) -> Row:
    """One run of a table; differences are taken seed by seed, so that the seeds' common variation cancels."""
    score = of_few([one.score for one in seeds.values()])
    difference = of_few([seeds[seed].score - against[seed].score for seed in seeds if seed in against])
    loss = of_few([one.losses[-1] for one in seeds.values()])
    minutes = fmean((one.clock[-1] if one.clock else 0.0) for one in seeds.values()) / 60
    kinds = sorted({kind for one in seeds.values() for kind in one.events if kind != "arrived"})
    counts = {kind: fmean(one.events.get(kind, 0) for one in seeds.values()) for kind in kinds}
    return {
        "run": run,
        "accuracy": round(score.value, 2),
        "half_interval": round(score.half, 2),
        "less_undisturbed": round(difference.value, 2),
        "half_interval_of_it": round(difference.half, 2),
        "development_loss": round(loss.value, 4),
        "half_interval_of_loss": round(loss.half, 4),
        "simulated_minutes": round(minutes, 1),
        "events": ", ".join(f"{count:.1f} {kind}" for kind, count in counts.items()) or "none",
    }


def tables_of(outcomes: Outcomes, wanted: Mapping[str, Sequence[str]]) -> dict[str, list[Row]]:
    """Table name -> its rows; a run is compared with the first of its table, a poisoned one with the clean mean."""
    found = {}
    for name, runs in wanted.items():
        there = [run for run in runs if run in outcomes]
        first = "clean-mean" if name in POISONED and "clean-mean" in outcomes else next(iter(there), "")
        found[name] = [row_of(run, outcomes[run], outcomes[first]) for run in there]
    return found


def draw(
    outcomes: Outcomes, wanted: Mapping[str, Sequence[str]], effects: Sequence[Effect], metric: Metric, folder: Path
) -> dict[str, Markup]:
    """Save every figure; name -> the HTML that embeds it."""
    canvas, figures = Canvas(folder), {}
    if any(effect.interval for effect in effects):
        figures["forest"] = canvas.place(draw_forest(effects, {metric.name: metric}), "forest", "forest")
    for name in ("dropout", "stragglers"):
        there = {run: outcomes[run] for run in wanted.get(name, ()) if run in outcomes}
        if curves := {run: _mean_curve(own) for run, own in there.items() if own[min(own)].clock}:
            figures[name] = canvas.place(draw_by_time(curves), name, name)
    bars = {
        title: [of_few([one.score for one in outcomes[f"{count}-{kind}"].values()]) for count in POISONED]
        for kind, title in DEFENCES.items()
        if all(f"{count}-{kind}" in outcomes for count in POISONED)
    }
    if bars:
        figures["poison"] = canvas.place(draw_defences(bars, list(POISONED.values())), "poison", "poison")
    return figures


def _mean_curve(seeds: Mapping[int, AtSeed]) -> list[tuple[float, float]]:
    """(minutes, loss) a round, means over seeds."""
    rounds = zip(*([*zip(one.clock, one.losses, strict=True)] for one in seeds.values()), strict=False)
    return [(fmean(clock for clock, _ in own) / 60, fmean(loss for _, loss in own)) for own in rounds]


def render(
    order: ReportOrder, tables: Mapping[str, Sequence[Row]], figures: Mapping[str, Markup], **about: object
) -> str:
    """The page as HTML: our sections, and then a user's own.

    Args:
        tables, figures: results of the functions above.
        about: `question`, `effects` (their table), `seeds` (their number), `samples` (data sets that are one).
    """
    shown = {name: tables.get(name, []) for name in ("dropout", "stragglers", *POISONED)}
    others = {name: rows for name, rows in tables.items() if name not in shown}
    return page("faults_page.html.j2", figures, order=order, tables=shown, others=others, **about)
