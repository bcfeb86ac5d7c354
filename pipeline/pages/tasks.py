"""Results of tasks with labels and titles -> tables by setting, of partitions and of cuts, figures and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.comparisons import Comparison, Effect, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.pooled import combined, value_of
from pipeline.pages.gallery import label_counts_of, write_gallery
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.task_page import TaskPage
from pipeline.report.task_tables import THEIRS, RunOutcome, data_row
from pipeline.runs.identity import record_identities
from pipeline.runs.metrics import write_pooled_metrics
from pipeline.runs.result_files import Result, read_results_of
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table, write_table


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics.

    Raises:
        QuorumError: no run has a result, or comparisons.yaml is wrong.
    """
    metrics = {name: load_task(module).metrics for name, module in order.data.items()}
    results = read_results_of(order.runs)
    by_name: dict[str, dict[int, RunRow]] = {}
    unscored: dict[str, None] = {}
    for row in (row for row in order.runs if row.id in results):
        if metrics[row.data[0]][0].name in results[row.id]["scores"]["examples"][0]:
            by_name.setdefault(row.name, {})[row.seed] = row
        else:
            unscored[row.name] = None
    if unscored:
        say(f"report: {', '.join(unscored)}: have a loss alone, and are not shown; set decode: true")
    by_run = {name: _outcome(rows, results, metrics) for name, rows in by_name.items()}
    label_counts = {setting: counts for setting in order.settings if (counts := label_counts_of(setting))}
    unassigned = {setting: _unassigned(setting) for setting in label_counts}
    config = read_comparisons(layout.COMPARISONS)
    skewed = altered(order, config.settings)
    effects = effects_of(
        [one for one in config.comparisons if one.scale in (None, order.scale)],
        {name: one for name, one in by_run.items() if one.row.setting not in skewed},
        metrics,
        order.sign_flips,
    )
    notes = {name: read_json(layout.notes(name)) for name in order.data}
    paper = read_table(layout.paper(order.paper)) if order.paper else []
    theirs = {
        name: THEIRS.get(module.rpartition(".")[2], "") if name in order.published else ""
        for name, module in order.data.items()
    }
    data = [
        data_row(name, about, _unlearned(name, by_run, results), theirs[name], paper) for name, about in notes.items()
    ]
    page = TaskPage(order, by_run, label_counts, metrics, config.question, effects, data, paper, skewed, unassigned)
    tables = page.tables()
    for folder in (layout.TABLES, layout.FIGURES, layout.all_metrics().parent):
        empty_folder(folder)
    for name, rows in tables.items():
        write_table(layout.TABLES / f"{name}.csv", rows)
    figures = page.draw(layout.FIGURES)
    samples = sorted({name for name, about in notes.items() if about["source"]["source"] == "sample"})
    write_text(layout.REPORT, page.render(figures, tables, samples))
    write_gallery(order)
    write_pooled_metrics({name: _by_seed(one, metrics[one.row.data[0]]) for name, one in by_run.items()})
    record_identities({row.id: row for row in order.runs}, results)


def effects_of(
    comparisons: Sequence[Comparison],
    by_run: Mapping[str, RunOutcome],
    metrics: Mapping[str, Sequence[Metric]],
    samples: int,
) -> list[Effect]:
    """Compute the comparisons' effects over the test texts of their runs.

    Raises:
        QuorumError: a run's task has no metric of this name.
    """
    known = {metric.name for own in metrics.values() for metric in own}
    own = {run: {metric.name: metric for metric in metrics[one.row.data[0]]} for run, one in by_run.items()}
    comparisons = on_known_metrics(layout.COMPARISONS, comparisons, own)
    comparisons = [one for one in comparisons if set(one.effects) <= known]

    def contrast(terms: Mapping[str, float], name: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`."""
        if not set(terms) <= set(by_run):
            return None
        shared = set.intersection(*(set(by_run[run].scored) for run in terms))
        seeds = shared if seed is None else shared & {seed}
        if not seeds:
            return None
        metric = own[next(iter(terms))][name]
        runs = {run: {s: by_run[run].scored[s] for s in sorted(seeds)} for run in terms}
        return combined([(metric.sign * weight, runs[run]) for run, weight in terms.items()], metric)

    return compare(comparisons, contrast, sorted({seed for one in by_run.values() for seed in one.scored}), samples)


def altered(order: ReportOrder, published: Mapping[str, Json]) -> frozenset[str]:
    """Find the settings whose skew differs from the paper's."""
    return frozenset(
        setting
        for setting, skew in published.items()
        if setting in order.settings
        and any(getattr(order.settings[setting], knob, None) != value for knob, value in skew.items())
    )


def _unlearned(data: str, by_run: Mapping[str, RunOutcome], results: Mapping[str, Result]) -> int | None:
    """Count the training texts of a data set's first run whose first windows lack the answer."""
    row = next((one.row for one in by_run.values() if one.row.data[0] == data), None)
    return None if row is None else int(results[row.id]["unlearned"])


def _unassigned(setting: str) -> int:
    """Count the drawn texts that neither a client nor the server has, at the first seed."""
    return int(next(iter(read_json(layout.clients_of(setting))["seeds"].values()))["unassigned"])


def _outcome(
    rows: Mapping[int, RunRow], results: Mapping[str, Result], metrics: Mapping[str, Sequence[Metric]]
) -> RunOutcome:
    """A run's scores, its rounds and its size, over its seeds."""
    first = next(iter(rows.values()))
    own = {seed: results[row.id] for seed, row in rows.items()}
    scored = {seed: one["scores"]["examples"] for seed, one in own.items()}
    metric = metrics[first.data[0]][0]
    best = {seed: value_of(one["scores"].get("best") or one["scores"]["examples"], metric) for seed, one in own.items()}
    curves, sent = {}, 0.0
    for seed, one in own.items():
        by_round: dict[int, list[float]] = {}
        for line in one["history"]:
            by_round.setdefault(int(line["round"]), []).append(float(line["validation_loss"]))
            sent += (float(line["bytes_up"]) + float(line["bytes_down"])) / len(own)
        if by_round:
            curves[seed] = [sum(losses) / len(losses) for _, losses in sorted(by_round.items())]
    return RunOutcome(first, scored, best, curves, sent, results[first.id]["parameters"])


def _by_seed(result: RunOutcome, metrics: Sequence[Metric]) -> dict[int, dict[str, float]]:
    """Every metric over all test texts, at each seed."""
    return {seed: {one.name: value_of(rows, one) for one in metrics} for seed, rows in result.scored.items()}
