"""Scores, rounds and events of an experiment on faults -> its tables, figures, metrics and page.

Dropout, stragglers and poisoned clients, as means over seeds with intervals by Student's t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from pipeline.evaluation.comparisons import Effect, read_comparisons
from pipeline.evaluation.intervals import of_few
from pipeline.evaluation.pooled import value_of
from pipeline.federated.history import CLOCK
from pipeline.pages.files import warnings_of, write_page
from pipeline.pages.tasks import Outcomes, effects_of, outcomes_of, write_tables
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import effect_records, effects_table
from pipeline.report.figures.bars import draw_defences
from pipeline.report.figures.curves import draw_curves
from pipeline.report.figures.intervals import draw_forest
from pipeline.report.page import Canvas, page
from pipeline.report.task_tables import Outcome, metrics_of
from pipeline.runs.result_files import read_results_of
from pipeline.workspace import layout
from pipeline.workspace.record import Json

POISONED = {"clean": "none", "one": "one of ten", "two": "two of ten"}
DEFENCES = {
    "mean": "mean",
    "median": "median",
    "trimmed": "trimmed mean",
    "clipped": "norm clipping",
    "krum": "multi-Krum",
}
LOSS = "development loss, nats a text"
Sections = Mapping[str, Sequence[str]]
"""Table -> its runs."""


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics: our sections, and then a user's own.

    Raises QuorumError if no run has a result, or comparisons.yaml is wrong.
    """
    files = read_results_of(order.runs)
    outcomes, metrics = outcomes_of(order, files), {metric.name: metric for metric in metrics_of(order)}
    config = read_comparisons(layout.COMPARISONS)
    effects = effects_of(order, config.comparisons, outcomes)
    tables = tables_of(outcomes, order.sections)
    write_tables({**tables, "comparisons": effect_records(effects)}, outcomes)
    seeds = {seed: f"seed {seed}" for seed in sorted({row.seed for row in order.runs if row.id in files})}
    shown = {name: tables.pop(name, []) for name in ("dropout", "stragglers", *POISONED)}
    text = page(
        "faults_page.html.j2",
        draw(outcomes, order.sections, effects, layout.FIGURES),
        warnings=warnings_of(order, files),
        order=order,
        question=config.question,
        metric=next(iter(metrics.values())).title,
        seeds=len(seeds),
        effects=effects_table(effects, lambda one: metrics[one.metric], seeds),
        tables=shown,
        poisoned=POISONED,
        others=tables,
    )
    write_page(order, files, text)


def scores_of(run: Outcome) -> dict[int, float]:
    """Seed -> the score of all test texts, in points."""
    return {seed: value_of(rows, run.metric) for seed, rows in run.scored.items()}


def row_of(run: Outcome, against: Outcome) -> Json:
    """One run of a table; differences are taken seed by seed, so that the seeds' common variation cancels."""
    own, other, seeds = scores_of(run), scores_of(against), run.results.values()
    score, difference = of_few([*own.values()]), of_few([own[seed] - other[seed] for seed in own if seed in other])
    loss = of_few([losses[-1] for losses in run.by_round().values()])
    clocks = run.by_round(CLOCK)
    minutes = fmean(clocks[seed][-1] if seed in clocks else 0.0 for seed in own) / 60
    kinds = sorted({kind for one in seeds for kind in one["events"] if kind != "arrived"})
    counts = {kind: fmean(one["events"].get(kind, 0) for one in seeds) for kind in kinds}
    return {
        "run": run.row.name,
        run.metric.name: round(score.value, 2),
        "half_interval": round(score.half, 2),
        "less_undisturbed": round(difference.value, 2),
        "half_interval_of_it": round(difference.half, 2),
        "development_loss": round(loss.value, 4),
        "half_interval_of_loss": round(loss.half, 4),
        "simulated_minutes": round(minutes, 1),
        "events": ", ".join(f"{count:.1f} {kind}" for kind, count in counts.items()) or "none",
    }


def tables_of(outcomes: Outcomes, wanted: Sections) -> dict[str, list[Json]]:
    """Table name -> its rows; a run is compared with the first of its table, a poisoned one with the clean mean."""
    found = {}
    for name, runs in wanted.items():
        there = [outcomes[run] for run in runs if run in outcomes]
        clean = outcomes.get("clean-mean") if name in POISONED else None
        found[name] = [row_of(run, clean or there[0]) for run in there]
    return found


def draw(outcomes: Outcomes, wanted: Sections, effects: Sequence[Effect], folder: Path) -> dict[str, Markup]:
    """Save every figure; name -> the HTML that embeds it."""
    canvas, figures = Canvas(folder), {}
    if any(effect.interval for effect in effects):
        metrics = {metric.name: metric for run in outcomes.values() for metric in run.metrics}
        figures["forest"] = canvas.place(draw_forest(effects, metrics), "forest", "forest")
    for name in ("dropout", "stragglers"):
        there = [outcomes[run] for run in wanted.get(name, ()) if run in outcomes]
        if curves := {run.row.name: _mean_curve(run) for run in there if run.by_round(CLOCK)}:
            figures[name] = canvas.place(draw_curves({"": curves}, LOSS, "simulated minutes"), name, name)
    bars = {
        title: [of_few([*scores_of(outcomes[f"{count}-{kind}"]).values()]) for count in POISONED]
        for kind, title in DEFENCES.items()
        if all(f"{count}-{kind}" in outcomes for count in POISONED)
    }
    if bars:
        metric = outcomes["clean-mean"].metric
        figure = draw_defences(bars, list(POISONED.values()), metric.title)
        figures["poison"] = canvas.place(figure, "poison", "poison", metric=metric.title)
    return figures


def _mean_curve(run: Outcome) -> list[tuple[float, float]]:
    """(minutes, development loss) a round, means over seeds."""
    clocks, losses = (zip(*run.by_round(column).values(), strict=False) for column in (CLOCK, "validation_loss"))
    return [(fmean(clock) / 60, fmean(loss)) for clock, loss in zip(clocks, losses, strict=False)]
