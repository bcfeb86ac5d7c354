"""Scores of all runs -> a page with a section for each table or figure of the paper, or each study."""

from __future__ import annotations

from typing import Any

from pipeline.model.loading import weights_bytes
from pipeline.plan.orders import ReportOrder, read_order
from pipeline.report.main_tables import history_rows
from pipeline.report.pairs import pairs_of
from pipeline.report.paper import Section, read_paper
from pipeline.report.paper_page import PaperPage, render
from pipeline.report.paper_pieces import AVERAGING, SELECTIVE, Material, draw, extra_pieces, sweeps
from pipeline.report.ratings import current_ratings
from pipeline.runs.identity import record_identities
from pipeline.runs.index import planned_key, read_encoded, target_limit
from pipeline.runs.metrics import small_metrics, write_metrics
from pipeline.runs.results import Results, first_runs, read_results, side_by_side
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, read_jsonl, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table


def run() -> None:
    """Render the page, and write the figures and metrics of the runs beyond the main table.

    Raises:
        QuorumError: a run's scores or history, or what `analyze` found, are missing.
    """
    order = read_order(layout.order("report"), ReportOrder)
    samples = order.sign_flips
    results = read_results(order.runs, samples, "report")
    figures = layout.figures(layout.MORE)
    for folder in (figures, layout.metrics_of_seeds(layout.MORE)):
        empty_folder(folder)
    further = [name for name, rows in results.rows.items() if layout.group_of(rows[0].id) == layout.MORE]
    write_metrics(layout.MORE, {name: results.metrics[name] for name in further}, results.by_seed)
    write_table(layout.HISTORY_MORE, *history_rows({name: results.histories[name] for name in further}))
    record_identities(layout.MORE, [row for name in further for row in results.rows[name]])
    compared = {study: side_by_side(results, names, samples) for study, names in order.studies.items()}
    endpoints = (load_task(order.task).metrics[0], LOSS)
    pairs = {study: pairs_of(study, list(own), results, endpoints, samples) for study, own in compared.items()}
    write_table(layout.HISTORY_MORE.with_name("pairs.csv"), [one.to_row() for own in pairs.values() for one in own])
    draw(order, compared, list(results.by_seed.values()), figures)
    first = first_runs(order, results)
    known: dict[str, Any] = {
        "order": order,
        "results": results,
        "notes": {corpus: read_json(layout.notes(corpus)) for corpus in order.corpora},
        "statistics": {corpus: read_table(layout.data_statistics(corpus)) for corpus in order.corpora},
        "compared": compared,
        "pairs": pairs,
        "indices": {setting: read_encoded(run).index for setting, run in first.items()},
        "limits": {setting: target_limit(run) for setting, run in first.items()},
        "trainings": {row.id: planned_key(row.id) for rows in results.rows.values() for row in rows},
    }
    # An experiment has no main table: its page has only its studies.
    if any(layout.group_of(row.id) == layout.MAIN for row in order.runs):
        page, data = layout.PAPER_REPORT, _on_the_paper(order, results, known)
    else:
        page, data = layout.REPORT, _on_studies(order, results, known)
        write_json(layout.METRICS, small_metrics(results.metrics, [one.name for one in endpoints]))
    write_text(page, render(data, figures))
    say(f"report: {page} is ready")


def _on_the_paper(order: ReportOrder, results: Results, known: dict[str, Any]) -> PaperPage:
    paper = read_paper()
    return PaperPage(
        **known,
        title="The paper’s tables and figures, regenerated",
        sections=paper.with_studies(order.studies),
        paper=read_table(layout.PAPER_RESULTS),
        extra=extra_pieces(order, results, _material(order, results), layout.figures(layout.MORE)),
    )


def _on_studies(order: ReportOrder, results: Results, known: dict[str, Any]) -> PaperPage:
    return PaperPage(
        **known,
        title=layout.workspace().name or "studies",
        sections=[Section(study=name, source="study", title=name) for name in order.studies],
        paper=(),
        extra=sweeps(order, results, layout.figures(layout.MORE)),
    )


def _material(order: ReportOrder, results: Results) -> Material:
    pair = [name for name in (SELECTIVE, AVERAGING) if name in results.rows]
    analysis: dict[str, dict[str, Any]] = {
        folder.name: {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
        for folder in sorted(layout.ANALYSIS.iterdir())
    }
    return Material(
        shares=read_table(layout.WORD_SHARES),
        pos=read_table(layout.POS_SHARES),
        ratings=current_ratings(order.runs),
        trials=read_table(layout.TUNING_TABLE) if layout.TUNING_TABLE.is_file() else [],
        analysis=analysis,
        texts={
            name: {row["id"]: row for row in read_jsonl(layout.predictions(results.rows[name][0].id))} for name in pair
        },
        model_bytes=weights_bytes(layout.BACKBONE),
        main_figures=layout.figures(layout.MAIN),
    )
