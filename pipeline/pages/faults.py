"""Scores, rounds and events of an experiment on faults -> its tables, figures, metrics and page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pipeline.evaluation.comparisons import Contrast, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.intervals import Clusters
from pipeline.federated.history import CLOCK
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import TextPageOrder, TextRow
from pipeline.report.effects import effect_records, effect_row
from pipeline.report.faults_page import AtSeed, draw, render, tables_of
from pipeline.runs.text_tracking import project
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.reports import remove_others
from pipeline.workspace.tables import read_table, write_table


def run() -> None:
    """Render the page, write tables, figures and metrics, and log the runs in MLflow."""
    order = read_order(layout.order("page"), TextPageOrder)
    metrics = {name: load_task(module).metrics[0] for name, module in order.datasets.items()}
    results = {row.name: _results_of(row, metrics[row.dataset].name) for row in order.runs}
    config, metric = read_comparisons(layout.COMPARISONS), next(iter(metrics.values()))
    comparisons = on_known_metrics(layout.COMPARISONS, config.comparisons, {run: [metric.name] for run in results})
    seeds = sorted(set().union(*results.values()))
    effects = compare(comparisons, _contrast_of(results, metric), seeds, order.sign_flips)
    shown = [effect_row(one, metric, {seed: f"seed {seed}" for seed in seeds}) for one in effects]
    tables = tables_of(results, order.tables)
    for name, rows in tables.items():
        write_table(layout.TABLES / f"{name}.csv", rows)
    notes = {name: read_json(layout.notes(name)) for name in order.datasets}
    samples = sorted(name for name, about in notes.items() if about["source"]["source"] == "sample")
    figures = draw(results, order.tables, effects, metric, layout.FIGURES)
    write_table(layout.COMPARISONS_TABLE, effect_records(effects))
    write_text(layout.REPORT, render(config.question, shown, tables, figures, len(seeds), samples))
    remove_others(layout.TABLES, {*tables, layout.COMPARISONS_TABLE.stem})
    remove_others(layout.FIGURES, figures.keys())
    write_json(layout.METRICS, {row["run"]: row["accuracy"] for rows in tables.values() for row in rows})
    say(f"page: {layout.REPORT} is ready")
    scores = {
        row.name: {seed: {metrics[row.dataset].name: one.score} for seed, one in results[row.name].items()}
        for row in order.runs
    }
    project(order, scores)


def _contrast_of(results: Mapping[str, Mapping[int, AtSeed]], metric: Metric) -> Contrast:
    """A contrast whose score at a seed is the only group of the only client."""

    def contrast(terms: Mapping[str, float], _metric: str, seed: int | None) -> dict[str, Clusters] | None:
        if seed is None or any(seed not in results.get(run, {}) for run in terms):
            return None
        value = sum(metric.sign * weight * results[run][seed].score for run, weight in terms.items())
        return {"all": Clusters.of(["all"], [value], [1.0])}

    return contrast


def _results_of(row: TextRow, metric: str) -> dict[int, AtSeed]:
    scores = read_json(layout.scores(f"{layout.ON_TEXTS}/{row.name}"))
    found = {}
    for seed, own in scores.items():
        run_id = layout.run_on_texts(row.name, int(seed))
        rounds = read_table(layout.history(run_id))
        events = read_table(layout.events(run_id)) if layout.events(run_id).is_file() else []
        score = sum(one[metric] for one in own["examples"]) / len(own["examples"])
        losses = [float(one["validation_loss"]) for one in rounds]
        clock = [float(one[CLOCK]) for one in rounds if one.get(CLOCK)]
        found[int(seed)] = AtSeed(score, losses, clock, Counter(one["kind"] for one in events))
    return found
