"""Results of tasks on texts -> tables by setting, of partitions and of cuts, figures and the page."""

from collections.abc import Mapping, Sequence

from pipeline.evaluation.comparisons import Comparison, Effect, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.pooled import combined, value_of
from pipeline.pages.files import drawn_of, empty_outputs, papers_numbers, say_unknown, warnings_of, write_page
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.task_page import Tables, TaskPage
from pipeline.report.task_tables import Outcome, metrics_of
from pipeline.runs.result_files import Result, read_results_of
from pipeline.runs.results import write_pooled_metrics
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import write_table

Outcomes = Mapping[str, Outcome]  # run -> its results


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics.

    Raises QuorumError if no run has a result, or comparisons.yaml is wrong or has a misspelt run.
    """
    files = read_results_of(order.runs)
    outcomes = outcomes_of(order, files)
    config = read_comparisons(layout.COMPARISONS)
    skewed = altered(order, config.settings)
    comparisons = [one for one in config.comparisons if one.scale in (None, order.scale)]
    say_unknown(order, comparisons)
    comparable = {name: one for name, one in outcomes.items() if one.row.setting not in skewed}
    page = TaskPage(
        order,
        outcomes,
        drawn={setting: drawn for setting in order.settings if (drawn := drawn_of(setting))},
        notes={name: read_json(layout.notes(name)) for name in order.data},
        question=config.question,
        effects=effects_of(order, comparisons, comparable),
        paper=papers_numbers(order),
        altered=skewed,
    )
    tables = page.tables()
    write_tables(tables, outcomes)
    write_page(order, files, page.render(tables, warnings_of(order, files)))


def outcomes_of(order: ReportOrder, files: Mapping[str, Result]) -> dict[str, Outcome]:
    """Run -> its results at its seeds; runs that have a loss alone are left out.

    `files`: run at a seed -> its result.
    """
    by_run: dict[str, list[RunRow]] = {}
    unscored: dict[str, None] = {}
    for row in (row for row in order.runs if row.id in files):
        if load_task(order.data[row.data[0]]).metrics[0].name in files[row.id]["scores"]["examples"][0]:
            by_run.setdefault(row.name, []).append(row)
        else:
            unscored[row.name] = None
    if unscored:
        say(f"report: {', '.join(unscored)}: have a loss alone, and are not shown; set decode: true")

    def outcome(rows: Sequence[RunRow]) -> Outcome:
        metrics = load_task(order.data[rows[0].data[0]]).metrics
        return Outcome(rows[0], metrics, {row.seed: files[row.id] for row in rows})

    return {name: outcome(rows) for name, rows in by_run.items()}


def write_tables(tables: Tables, outcomes: Outcomes) -> None:
    """Write a page's tables, and the metrics of its runs, in place of the last page's."""
    empty_outputs()
    for name, rows in tables.items():
        write_table(layout.TABLES / f"{name}.csv", rows)
    write_pooled_metrics(
        {
            run: {seed: {m.name: value_of(rows, m) for m in one.metrics} for seed, rows in one.scored.items()}
            for run, one in outcomes.items()
        }
    )


def effects_of(order: ReportOrder, comparisons: Sequence[Comparison], outcomes: Outcomes) -> list[Effect]:
    """Compute the comparisons' effects over the test texts of their runs.

    Raises QuorumError if a run's task has no metric of this name.
    """
    known = {metric.name for metric in metrics_of(order)}
    own = {run: {metric.name: metric for metric in one.metrics} for run, one in outcomes.items()}
    comparisons = on_known_metrics(layout.COMPARISONS, comparisons, own)

    def contrast(terms: Mapping[str, float], name: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`."""
        if not set(terms) <= set(outcomes):
            return None
        shared = set.intersection(*(set(outcomes[run].scored) for run in terms))
        seeds = sorted(shared if seed is None else shared & {seed})
        if not seeds:
            return None
        metric = own[next(iter(terms))][name]
        signed = [(metric.sign * weight, {s: outcomes[run].scored[s] for s in seeds}) for run, weight in terms.items()]
        return combined(signed, metric)

    seeds = sorted({seed for one in outcomes.values() for seed in one.scored})
    return compare([one for one in comparisons if set(one.effects) <= known], contrast, seeds, order.sign_flips)


def altered(order: ReportOrder, published: Mapping[str, Json]) -> frozenset[str]:
    """Find the settings whose skew differs from the paper's."""
    known = {name: order.settings[name] for name in published if name in order.settings}
    return frozenset(n for n, own in known.items() if any(getattr(own, k, None) != v for k, v in published[n].items()))
