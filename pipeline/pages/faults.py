"""Scores, rounds and events of an experiment on faults -> its tables, figures, metrics and page."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.evaluation.comparisons import Contrast, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.intervals import Clusters
from pipeline.federated.history import CLOCK
from pipeline.pages.files import empty_outputs, write_page
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import effect_records, effects_table
from pipeline.report.faults_page import AtSeed, draw, render, tables_of
from pipeline.runs.metrics import write_pooled_metrics
from pipeline.runs.result_files import Result, read_results_of
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.tables import write_table


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics.

    Raises QuorumError if no run has a result, or comparisons.yaml is wrong.
    """
    metric = load_task(next(iter(order.data.values()))).metrics[0]
    files = read_results_of(order.runs)
    results: dict[str, dict[int, AtSeed]] = {}
    for row in (row for row in order.runs if row.id in files):
        results.setdefault(row.name, {})[row.seed] = _at_seed(files[row.id], metric.name)
    config = read_comparisons(layout.COMPARISONS)
    comparisons = on_known_metrics(layout.COMPARISONS, config.comparisons, {run: [metric.name] for run in results})
    seeds = sorted(set().union(*results.values()))
    effects = compare(comparisons, _contrast_of(results, metric), seeds, order.sign_flips)
    shown = effects_table(effects, lambda _: metric, {seed: f"seed {seed}" for seed in seeds})
    tables = tables_of(results, order.sections)
    empty_outputs()
    for name, rows in tables.items():
        write_table(layout.TABLES / f"{name}.csv", rows)
    write_table(layout.COMPARISONS_TABLE, effect_records(effects))
    write_pooled_metrics({run: {s: {metric.name: one.score} for s, one in own.items()} for run, own in results.items()})
    figures = draw(results, order.sections, effects, metric, layout.FIGURES)
    sources = [source for own in files.values() for source in own["source"].items()]
    samples = sorted({name for name, about in sources if about["source"] == "sample"})
    about = {"question": config.question, "effects": shown, "seeds": len(seeds), "samples": samples}
    write_page(order, files, render(order, tables, figures, **about))


def _contrast_of(results: Mapping[str, Mapping[int, AtSeed]], metric: Metric) -> Contrast:
    """A contrast whose score at a seed is the only group of the only client."""

    def contrast(terms: Mapping[str, float], _metric: str, seed: int | None) -> dict[str, Clusters] | None:
        if seed is None or any(seed not in results.get(run, {}) for run in terms):
            return None
        value = sum(metric.sign * weight * results[run][seed].score for run, weight in terms.items())
        return {"all": Clusters.of(["all"], [value], [1.0])}

    return contrast


def _at_seed(result: Result, metric: str) -> AtSeed:
    rows, rounds = result["scores"]["examples"], result["history"]
    score = sum(one[metric] for one in rows) / len(rows)
    losses = [float(one["validation_loss"]) for one in rounds]
    clock = [float(one[CLOCK]) for one in rounds if one.get(CLOCK)]
    return AtSeed(score, losses, clock, result["events"])
