"""Results -> a page with a section for each table or figure of the paper, or for each of params.yaml."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.pages.files import empty_outputs, papers_numbers, table_if_any, write_page
from pipeline.plan.orders import ReportOrder
from pipeline.report.main_tables import history_rows, main_table
from pipeline.report.naming import looks
from pipeline.report.page import Canvas
from pipeline.report.pairs import pairs_of
from pipeline.report.paper import Section, read_paper
from pipeline.report.paper_page import PaperPage, render
from pipeline.report.paper_pieces import Material, extra_pieces
from pipeline.report.ratings import current_ratings
from pipeline.runs.metrics import write_metrics
from pipeline.runs.result_files import Result, read_results_of
from pipeline.runs.results import results_of, side_by_side
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table, write_table


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics.

    Raises QuorumError if no run has a result, or what `analyze` found is missing.
    """
    order = _of_first_task(order)
    samples, rows = order.sign_flips, [row for row in order.runs if not row.left_out]
    files = read_results_of(rows)
    results = results_of(rows, files, samples, "report")
    metrics = (*load_task(next(iter(order.data.values()))).metrics, LOSS)
    endpoints = (metrics[0], LOSS)
    empty_outputs()
    write_metrics(results.metrics, results.by_seed, [one.name for one in endpoints])
    write_table(layout.MAIN_TABLE, main_table(results, metrics, looks(rows)))
    write_table(layout.HISTORY, *history_rows(results.histories))
    compared = {section: side_by_side(results, names, samples) for section, names in order.sections.items()}
    pairs = {section: pairs_of(section, list(own), results, endpoints, samples) for section, own in compared.items()}
    write_table(layout.TABLES / "pairs.csv", [one.to_row() for own in pairs.values() for one in own])
    paper = read_paper() if order.paper else None
    of_settings: dict[str, Result] = {}
    for row in (row for row in rows if row.id in files):
        of_settings.setdefault(row.setting, files[row.id])
    plain = [Section(name=name, source="section", title=name) for name in order.sections]
    data = PaperPage(
        order=order,
        metric=metrics[0],
        results=results,
        notes={name: read_json(layout.notes(name)) for name in order.data},
        statistics={name: read_table(layout.data_statistics(name)) for name in order.data},
        compared=compared,
        pairs=pairs,
        of_settings=of_settings,
        trainings={run: own["training"] for run, own in files.items()},
        title="The paper’s tables and figures, rebuilt" if paper else layout.workspace().name or "sections",
        sections=paper.with_sections(order.sections) if paper else plain,
        paper=papers_numbers(order),
        extra=extra_pieces(order, results, _material(order, files), Canvas(layout.FIGURES), metrics[0]),
    )
    write_page(order, files, render(data, layout.FIGURES))


def _of_first_task(order: ReportOrder) -> ReportOrder:
    """The order without the data sets and runs of other tasks than the first data set's, which share no scores."""
    task = next(iter(order.data.values()))
    rows = [row for row in order.runs if order.data[row.data[0]] == task]
    others = sorted({row.name for row in order.runs} - {row.name for row in rows})
    if others:
        say(f"report: {', '.join(others)} are of other tasks, and are not shown; set page: tasks")
    data = {name: module for name, module in order.data.items() if module == task}
    sections = {name: own for name, own in order.sections.items() if not set(own) & set(others)}
    return order.model_copy(update={"runs": rows, "data": data, "sections": sections})


def _material(order: ReportOrder, files: Mapping[str, Result]) -> Material:
    analysis: dict[str, Json] = {}
    for path in sorted(layout.ANALYSIS.glob("*/*.json")):
        analysis.setdefault(path.parent.name, {})[path.stem] = read_json(path)
    return Material(
        shares=read_table(layout.WORD_SHARES),
        pos=read_table(layout.POS_SHARES),
        ratings=current_ratings(order.runs, files),
        trials=[row for row in table_if_any(layout.TUNING_TABLE) if row["scale"] == order.scale],
        analysis=analysis,
        model_bytes=next(own["backbone_bytes"] for own in files.values() if own["backbone_bytes"]),
    )
