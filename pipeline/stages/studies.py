"""Scores of an experiment's runs -> a figure a study, metrics, and reports/report.html on them."""

from __future__ import annotations

from pipeline.plan.orders import ReportOrder, read_order
from pipeline.report.main_tables import history_rows
from pipeline.report.paper import Section
from pipeline.report.paper_page import PaperPage, render
from pipeline.report.paper_pieces import draw, experiment_pieces
from pipeline.runs.identity import record_identities
from pipeline.runs.index import planned_key, read_encoded
from pipeline.runs.metrics import small_metrics, write_metrics
from pipeline.runs.results import first_runs, read_results, side_by_side, target_limit
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table


def run() -> None:
    order = read_order(layout.order("report"), ReportOrder)
    results = read_results(order.runs, order.bootstrap_samples, "studies")
    figures = layout.figures(layout.MORE)
    for folder in (figures, layout.metrics_of_seeds(layout.MORE)):
        empty_folder(folder)
    write_json(layout.METRICS, small_metrics(results.metrics, (load_task(order.task).metrics[0].name, LOSS.name)))
    write_metrics(layout.MORE, results.metrics, results.by_seed)
    write_table(layout.HISTORY_MORE, *history_rows(results.histories))
    record_identities(layout.MORE, [row for rows in results.rows.values() for row in rows])
    compared = {study: side_by_side(results, names, order.bootstrap_samples) for study, names in order.studies.items()}
    draw(order, compared, list(results.by_seed.values()), figures)
    first = first_runs(order, results)
    data = PaperPage(
        order=order,
        title=layout.workspace().name or "studies",
        results=results,
        sections=[Section(study=name, source="study", title=name) for name in order.studies],
        claims=(),
        paper=(),
        notes={corpus: read_json(layout.notes(corpus)) for corpus in order.corpora},
        statistics={corpus: read_table(layout.data_statistics(corpus)) for corpus in order.corpora},
        compared=compared,
        indices={setting: read_encoded(run).index for setting, run in first.items()},
        limits={setting: target_limit(run) for setting, run in first.items()},
        trainings={row.id: planned_key(row.id) for rows in results.rows.values() for row in rows},
        extra=experiment_pieces(order, results, figures),
    )
    write_text(layout.REPORT, render(data, figures))
    say(f"studies: {layout.REPORT} is ready")
