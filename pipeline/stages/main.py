"""Scores of the main table's runs -> its tables, figures, metrics and reports/report.html.

Which runs there are is read from the plan, never from a folder: a run that left params.yaml leaves every table.
"""

from __future__ import annotations

import math

from pipeline.corpora.prepared import examples_of
from pipeline.evaluation.claims import judge, rivals
from pipeline.evaluation.scores import significance
from pipeline.federated.methods import OURS
from pipeline.plan.orders import MainOrder, read_order
from pipeline.report.main_data import MainData
from pipeline.report.main_figures import draw
from pipeline.report.main_page import render
from pipeline.report.main_tables import history_rows, main_table
from pipeline.report.paper import read_paper
from pipeline.runs.identity import record_identities
from pipeline.runs.index import read_encoded
from pipeline.runs.metrics import small_metrics, write_metrics
from pipeline.runs.orientation import orientation_of
from pipeline.runs.results import knob_of, read_results, target_limit
from pipeline.runs.truncation import cut_of
from pipeline.runs.words import words_of_run
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table


def run() -> None:
    """
    Raises:
        QuorumError: a run's scores or history are missing.
    """
    order = read_order(layout.order("main"), MainOrder)
    results = read_results(order.runs, order.sign_flips, "main")
    claims = read_paper().claims
    judged = judge(claims, results.scored, results.scored_by_seed, results.converged, order.sign_flips)
    ours = next((name for name, rows in results.rows.items() if rows[0].method == OURS), None)
    metrics = (*load_task(order.task).metrics, LOSS)
    endpoints = (metrics[0].name, LOSS.name)
    comparisons = significance(results.scored, ours, rivals(claims, ours), endpoints, order.sign_flips) if ours else []
    tested = next(iter(results.scored.values()))
    words = words_of_run(results.rows[ours] if ours else [], order.sign_flips)
    data = MainData(
        order=order,
        notes=read_json(layout.notes("qmsum")),
        cut=cut_of(read_encoded(order.runs[0].id).index, target_limit(order.runs[0].id)),
        results=results,
        metrics=metrics,
        comparisons=comparisons,
        claims=[one for one in judged if one.word != "not run"],
        orientation=orientation_of(
            load_task(order.task), examples_of(["qmsum"]), tested, use_stemmer=order.use_stemmer
        ),
        paper=read_table(layout.PAPER_RESULTS),
        pos=words.parts,
        shares=words.shares,
        sensitivities=words.sensitivities,
        predictions={name: read_jsonl(layout.predictions(rows[0].id)) for name, rows in results.rows.items()},
        lens=read_json(layout.lens(results.rows[ours][0].id)) if ours else [],
        selective=ours,
        tau=knob_of(results, ours, "tau") if ours else math.nan,
    )
    write_json(layout.METRICS, small_metrics(results.metrics, endpoints))
    write_metrics(layout.MAIN, results.metrics, results.by_seed)
    record_identities(layout.MAIN, order.runs)
    write_table(layout.SIGNIFICANCE, [one.to_row() for one in comparisons])
    write_table(layout.POS_SHARES, words.parts)
    write_table(layout.REPORTS / layout.WORD_SHARES, words.shares)
    write_table(layout.MAIN_TABLE, main_table(data))
    write_table(layout.REPORTS / layout.HISTORY, *history_rows(results.histories))
    draw(data, layout.figures(layout.MAIN))
    write_text(layout.REPORT, render(data, layout.figures(layout.MAIN)))
    say(f"main: {layout.REPORT} is ready")
