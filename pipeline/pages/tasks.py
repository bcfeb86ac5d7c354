"""Results of tasks with labels and titles -> tables by setting, of partitions and of cuts, figures and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.corpora.example import is_sample
from pipeline.evaluation.comparisons import Comparison, Effect, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.pooled import combined, value_of
from pipeline.evaluation.scores import read_rows
from pipeline.pages.files import empty_outputs, label_counts_of, papers_numbers, write_page
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.task_page import TaskPage
from pipeline.report.task_tables import THEIRS, RunOutcome, data_row
from pipeline.runs.metrics import write_pooled_metrics
from pipeline.runs.result_files import Result, read_results_of
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import write_table

Metrics = Mapping[str, Sequence[Metric]]
"""Data set -> the metrics of its task."""


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics.

    Raises QuorumError if no run has a result, or comparisons.yaml is wrong.
    """
    metrics = {name: load_task(module).metrics for name, module in order.data.items()}
    files = read_results_of(order.runs)
    outcomes = _outcomes(order, files, metrics)
    config = read_comparisons(layout.COMPARISONS)
    skewed = altered(order, config.settings)
    comparisons = [one for one in config.comparisons if one.scale in (None, order.scale)]
    comparable = {name: one for name, one in outcomes.items() if one.row.setting not in skewed}
    notes = {name: read_json(layout.notes(name)) for name in order.data}
    label_counts = {setting: counts for setting in order.settings if (counts := label_counts_of(setting))}
    paper = papers_numbers(order)
    page = TaskPage(
        order,
        outcomes,
        label_counts,
        metrics,
        config.question,
        effects_of(comparisons, comparable, metrics, order.sign_flips),
        [_data_row(order, name, about, outcomes, files, paper) for name, about in notes.items()],
        paper,
        skewed,
        {setting: _unassigned(setting) for setting in label_counts},
    )
    tables = page.tables()
    empty_outputs()
    for name, rows in tables.items():
        write_table(layout.TABLES / f"{name}.csv", rows)
    write_pooled_metrics(
        {
            run: {s: {m.name: value_of(rows, m) for m in metrics[one.row.data[0]]} for s, rows in one.scored.items()}
            for run, one in outcomes.items()
        }
    )
    figures = page.draw(layout.FIGURES)
    samples = sorted(name for name, about in notes.items() if is_sample(about))
    write_page(order, files, page.render(figures, tables, samples))


def _outcomes(order: ReportOrder, files: Mapping[str, Result], metrics: Metrics) -> dict[str, RunOutcome]:
    """Run -> its scores, its rounds and its size, over its seeds; runs that have a loss alone are left out."""
    by_name: dict[str, dict[int, RunRow]] = {}
    unscored: dict[str, None] = {}
    for row in (row for row in order.runs if row.id in files):
        if metrics[row.data[0]][0].name in files[row.id]["scores"]["examples"][0]:
            by_name.setdefault(row.name, {})[row.seed] = row
        else:
            unscored[row.name] = None
    if unscored:
        say(f"report: {', '.join(unscored)}: have a loss alone, and are not shown; set decode: true")
    return {name: _outcome(rows, files, metrics) for name, rows in by_name.items()}


def _outcome(rows: Mapping[int, RunRow], files: Mapping[str, Result], metrics: Metrics) -> RunOutcome:
    first = next(iter(rows.values()))
    own = {seed: files[row.id] for seed, row in rows.items()}
    scored = {seed: read_rows(one["scores"]["examples"]) for seed, one in own.items()}
    metric = metrics[first.data[0]][0]
    at_best = {seed: one["scores"].get("best") or one["scores"]["examples"] for seed, one in own.items()}
    best = {seed: value_of(read_rows(rows), metric) for seed, rows in at_best.items()}
    curves, sent = {}, 0.0
    for seed, one in own.items():
        by_round: dict[int, list[float]] = {}
        for line in one["history"]:
            by_round.setdefault(int(line["round"]), []).append(float(line["validation_loss"]))
            sent += (float(line["bytes_up"]) + float(line["bytes_down"])) / len(own)
        if by_round:
            curves[seed] = [sum(losses) / len(losses) for _, losses in sorted(by_round.items())]
    return RunOutcome(first, scored, best, curves, sent, files[first.id]["parameters"])


def _data_row(
    order: ReportOrder,
    name: str,
    notes: Json,
    outcomes: Mapping[str, RunOutcome],
    files: Mapping[str, Result],
    paper: Sequence[Mapping[str, str]],
) -> Json:
    """A data set's row, with the training texts of its first run whose first windows lack the answer."""
    row = next((one.row for one in outcomes.values() if one.row.data[0] == name), None)
    unlearned = None if row is None else int(files[row.id]["unlearned"])
    task = THEIRS.get(order.data[name].rpartition(".")[2], "") if name in order.published else ""
    return data_row(name, notes, unlearned, task, paper)


def effects_of(
    comparisons: Sequence[Comparison], outcomes: Mapping[str, RunOutcome], metrics: Metrics, samples: int
) -> list[Effect]:
    """Compute the comparisons' effects over the test texts of their runs.

    Raises QuorumError if a run's task has no metric of this name.
    """
    known = {metric.name for own in metrics.values() for metric in own}
    own = {run: {metric.name: metric for metric in metrics[one.row.data[0]]} for run, one in outcomes.items()}
    comparisons = on_known_metrics(layout.COMPARISONS, comparisons, own)
    comparisons = [one for one in comparisons if set(one.effects) <= known]

    def contrast(terms: Mapping[str, float], name: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`."""
        if not set(terms) <= set(outcomes):
            return None
        shared = set.intersection(*(set(outcomes[run].scored) for run in terms))
        seeds = sorted(shared if seed is None else shared & {seed})
        if not seeds:
            return None
        metric = own[next(iter(terms))][name]
        weighted = [
            (metric.sign * weight, {s: outcomes[run].scored[s] for s in seeds}) for run, weight in terms.items()
        ]
        return combined(weighted, metric)

    return compare(comparisons, contrast, sorted({seed for one in outcomes.values() for seed in one.scored}), samples)


def altered(order: ReportOrder, published: Mapping[str, Json]) -> frozenset[str]:
    """Find the settings whose skew differs from the paper's."""
    return frozenset(
        setting
        for setting, skew in published.items()
        if setting in order.settings
        and any(getattr(order.settings[setting], knob, None) != value for knob, value in skew.items())
    )


def _unassigned(setting: str) -> int:
    """Count the drawn texts that neither a client nor the server has, at the first seed."""
    return int(next(iter(read_json(layout.clients_of(setting))["seeds"].values()))["unassigned"])
