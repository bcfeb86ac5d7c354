"""results/ and comparisons.yaml -> a main table's comparisons, tables, figures, metrics and reports/report.html.

Only these and tables of other stages are read, so a clone without texts, weights or models renders the page. The plan
decides which runs are shown: a run that is removed from params.yaml disappears from every table.
"""

from collections.abc import Mapping, Sequence

from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import Comparison, Comparisons, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.scores import ScoresBySeed
from pipeline.pages.files import empty_outputs, say_unknown, table_if_any, warnings_of, write_page
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.effects import effect_records, sensitivity_records
from pipeline.report.main_page import MainData, render
from pipeline.report.notes import history_rows, main_rows
from pipeline.runs.result_files import Result, deleted_results, read_results_of
from pipeline.runs.results import Results, results_of, scores_of, write_metrics
from pipeline.runs.sensitivities import effects_with
from pipeline.tasks.task import LOSS, Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table


def run(order: ReportOrder) -> None:
    """Render the page.

    Raises QuorumError if no run has a result, or comparisons.yaml is wrong or has a misspelt run.
    """
    data, files = write_files(order)
    write_page(order, files, render(data, warnings_of(order, files)))


def write_files(order: ReportOrder) -> tuple[MainData, Mapping[str, Result]]:
    """Write tables and metrics; the data of the page, and the results behind it."""
    rows = _shown(order)
    files = read_results_of(rows)
    every = scores_of(rows, files)
    data = _data(order, rows, files, every)
    empty_outputs()
    if data.effects:
        write_table(layout.COMPARISONS_TABLE, effect_records(data.effects))
    if data.sensitivities:
        write_table(layout.SENSITIVITIES_TABLE, sensitivity_records(data.sensitivities))
    write_table(layout.MAIN_TABLE, main_rows(data.results, data.metrics, data.looks))
    write_table(layout.HISTORY, *history_rows(every.histories))
    write_metrics(data.results, tuple(data.compared))
    _say_missing(data)
    return data, files


def _data(order: ReportOrder, rows: Sequence[RunRow], files: Mapping[str, Result], every: Results) -> MainData:
    """The page's data; `every`: all results, including those of incomplete runs."""
    metrics, samples = (*load_task(order.data[rows[0].data[0]]).metrics, LOSS), order.sign_flips
    by_name = {one.name: one for one in metrics}
    config, comparisons = known_comparisons(order, metrics)
    complete = _complete([row for own in every.rows.values() for row in own])
    scores = ScoresBySeed(every.scored_by_seed, by_name)
    record = files[next((row for row in complete if row.learner), complete[0]).id]
    return MainData(
        order=order.model_copy(update={"precision": record["precision"], "runs": rows}),
        comparisons=config,
        effects=compare(comparisons, scores.contrast, list(scores.runs), samples, scores.at_length),
        sensitivities=[
            (one.title, effects_with(one, comparisons, scores.runs, by_name, samples)) for one in config.sensitivities
        ],
        record=record,
        results=results_of(complete, files, samples, "main"),
        metrics=metrics,
        missing=list(dict.fromkeys(f"{row.name}-{row.seed}" for row in rows if row.id not in files)),
        deleted=deleted_results(rows),
        pos=table_if_any(layout.POS_SHARES),
        shares=table_if_any(layout.WORD_SHARES),
    )


def known_comparisons(order: ReportOrder, metrics: Sequence[Metric]) -> tuple[Comparisons, list[Comparison]]:
    """comparisons.yaml, and those of its comparisons that the task's metrics can make."""
    config, names = read_comparisons(layout.COMPARISONS), tuple(one.name for one in metrics)
    if foreign := {name for one in config.comparisons for name in one.effects} - set(names):
        say(f"report: {layout.COMPARISONS}: the task has no {', '.join(sorted(foreign))}; runs are not compared by it")
    say_unknown(order, config.comparisons)
    named = {run: names for one in config.comparisons for run in one.terms}
    return config, on_known_metrics(layout.COMPARISONS, config.comparisons, named)


def _shown(order: ReportOrder) -> list[RunRow]:
    """The runs of one setting, whose tests are the same: that of the first run that is not left out.

    Raises QuorumError if all runs are left out.
    """
    made = [row for row in order.runs if not row.left_out]
    if not made:
        raise QuorumError(f"{layout.PARAMS}: runs: all are left out at scale {order.scale}; choose another")
    setting = made[0].setting
    if others := sorted({row.name for row in made if row.setting != setting}):
        say(f"report: {', '.join(others)} are of other settings than {setting}, and are not shown; set page: paper")
    return [row for row in made if row.setting == setting]


def _complete(rows: Sequence[RunRow]) -> list[RunRow]:
    """The rows of runs with results at every seed: the runs of a table share their test meetings."""
    seeds = {row.seed for row in rows}
    return [row for row in rows if {one.seed for one in rows if one.name == row.name} == seeds]


def _say_missing(data: MainData) -> None:
    """Print one line on the planned runs that the page lacks, and how to get them."""
    if data.deleted:
        files = " ".join(data.deleted)
        say(f"report: warning: the page is without deleted results; `git checkout {files}` restores them")
    elif data.missing:
        train = "make repro-full" if layout.workspace().name == "full" else "dvc repro"
        say(f"report: no result yet of {', '.join(data.missing)}; `{train}` trains them")
