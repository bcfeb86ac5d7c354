"""Scores, rounds and events of an experiment on faults -> its tables, figures, metrics and page.

A section of params.yaml each, as means over seeds with intervals by Student's t.
"""

from collections.abc import Sequence
from statistics import fmean

from pipeline.evaluation.comparisons import read_comparisons
from pipeline.evaluation.intervals import of_few
from pipeline.evaluation.pooled import value_of
from pipeline.federated.history import CLOCK
from pipeline.pages.files import say_unknown, warnings_of, write_page
from pipeline.pages.tasks import effects_of, outcomes_of, write_tables
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import effect_records, effects_table
from pipeline.report.figures.curves import draw_curves
from pipeline.report.figures.intervals import draw_forest
from pipeline.report.page import Drawing, page, place
from pipeline.report.task_tables import Outcome, metrics_of
from pipeline.runs.result_files import read_results_of
from pipeline.workspace import layout
from pipeline.workspace.record import Json

LOSS = "development loss, nats a text"


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics: a table a section of params.yaml.

    Raises QuorumError if no run has a result, or comparisons.yaml is wrong.
    """
    files = read_results_of(order.runs)
    outcomes, metrics = outcomes_of(order, files), {metric.name: metric for metric in metrics_of(order)}
    config = read_comparisons(layout.COMPARISONS)
    say_unknown(order, config.comparisons)
    effects = effects_of(order, config.comparisons, outcomes)
    sections = {name: [outcomes[run] for run in runs if run in outcomes] for name, runs in order.sections.items()}
    tables = {name: [row_of(run, runs[0]) for run in runs] for name, runs in sections.items()}
    write_tables({**tables, "comparisons": effect_records(effects)}, outcomes)
    seeds = {seed: f"seed {seed}" for seed in sorted({row.seed for row in order.runs if row.id in files})}
    drawn = {name: figure for name, runs in sections.items() if (figure := draw_clock(name, runs))}
    text = page(
        "faults_page.html.j2",
        [Drawing(draw_forest(effects, metrics), "forest", "forest")] if any(one.interval for one in effects) else [],
        warnings=warnings_of(order, files),
        order=order,
        question=config.question,
        metric=next(iter(metrics.values())).title,
        seeds=len(seeds),
        effects=effects_table(effects, lambda one: metrics[one.metric], seeds),
        sections={name: (rows, place(drawn[name]) if name in drawn else "") for name, rows in tables.items()},
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


def draw_clock(name: str, runs: Sequence[Outcome]) -> Drawing | None:
    """A section's losses against simulated time; None where no run of it has a clock."""
    curves = {run.row.name: _mean_curve(run) for run in runs if run.by_round(CLOCK)}
    return Drawing(draw_curves({"": curves}, LOSS, "simulated minutes"), name, "clock") if curves else None


def _mean_curve(run: Outcome) -> list[tuple[float, float]]:
    """(minutes, development loss) a round, means over seeds."""
    clocks, losses = (zip(*run.by_round(column).values(), strict=False) for column in (CLOCK, "validation_loss"))
    return [(fmean(clock) / 60, fmean(loss)) for clock, loss in zip(clocks, losses, strict=False)]
