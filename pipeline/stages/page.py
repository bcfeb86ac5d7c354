"""results -> the page of a long experiment: its tables, figures and verdicts, from what is committed of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from pipeline.corpora.example import Example, read_examples
from pipeline.evaluation.claims import Claim, judge, of_other_runs, rivals
from pipeline.federated.methods import OURS
from pipeline.plan.orders import ReportOrder, read_order
from pipeline.report.claim_rows import claim_record
from pipeline.report.differences import differences
from pipeline.report.main_data import MainData
from pipeline.report.main_figures import draw
from pipeline.report.main_page import render
from pipeline.report.main_tables import history_rows, main_table
from pipeline.report.otherwise import other_tables, otherwise_records, tables_otherwise, written_by_round
from pipeline.report.paper import read_paper
from pipeline.report.robustness_rows import robustness_of
from pipeline.runs.audits import ANEW, BY_ROUND, read_audits, runs_of_audits
from pipeline.runs.kept import changed_since, missing, read_kept, rounds_of
from pipeline.runs.metrics import plain, small_metrics, write_metrics
from pipeline.runs.orientation import orientation_of
from pipeline.runs.results import Results, knob_of, results_of, scores_of
from pipeline.runs.truncation import Cut
from pipeline.runs.whole_seeds import of_whole_seeds
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table

COMMAND = "make page"
Records = Mapping[str, Mapping[str, Any]]
"""Run id -> what is kept of it."""


def run() -> None:
    """
    Raises:
        QuorumError: no run is kept.
    """
    order = read_order(layout.order("report"), ReportOrder)
    rows, records = read_kept(order.runs)
    scores = {run: own["scores"] for run, own in records.items()}
    rounds = {row.id: rounds_of(records[row.id], row.seed) for row in rows}
    # A claim is judged on all meetings that its two runs were tested on; a table's rows have to share theirs.
    known = scores_of(rows, scores, rounds)
    results = results_of(of_whole_seeds(rows, order.runs), scores, rounds, order.sign_flips, "page")
    alone = {
        seed: results_of([row for row in rows if row.seed == seed], scores, rounds, order.sign_flips, f"seed {seed}")
        for seed in known.scored_by_seed
    }
    data = _page(order, known, results, alone, records)
    folder = layout.figures(layout.MAIN)
    empty_folder(folder)
    write_json(layout.METRICS, small_metrics(results.metrics, (data.metrics[0].name, LOSS.name)))
    write_metrics(layout.MAIN, results.metrics, {})
    for seed in {row.seed for row in order.runs} - set(alone):
        layout.seed_metrics(layout.MAIN, seed).unlink(missing_ok=True)  # of results that are kept no longer
    for seed, own in alone.items():
        write_json(layout.seed_metrics(layout.MAIN, seed), plain(own.by_seed[seed]))
    judged = {"claims": data.claims, "converging": data.converging}
    write_json(layout.CLAIMS, {about: [claim_record(one) for one in own] for about, own in judged.items()})
    write_table(layout.ROBUSTNESS_TABLE, [{"of": about, **row} for about, own in data.audits.items() for row in own])
    if data.otherwise:
        write_table(layout.OTHERWISE_TABLE, data.otherwise)
    else:
        layout.OTHERWISE_TABLE.unlink(missing_ok=True)  # of audits of models that are planned no longer
    write_table(layout.SIGNIFICANCE, [one.to_row() for one in data.comparisons])
    write_table(layout.MAIN_TABLE, main_table(data))
    write_table(layout.REPORTS / layout.HISTORY, *history_rows(known.histories))
    draw(data, folder)
    write_text(layout.REPORT, render(data, folder))
    say(f"page: {layout.REPORT} is ready")


def _made_before(records: Records) -> str:
    found = changed_since(records)
    if not found:
        return ""
    named = "all results" if len(found) == len(records) else ", ".join(run.partition("/")[2] for run in found)
    return f"Made by another version of code or packages, in another precision, or with other threads: {named}"


def _validated(examples: Iterable[Example]) -> set[str]:
    """The official validation meetings, on whose losses rates and knobs were chosen."""
    return {example.meeting for example in examples if example.split == "val"}


def _own_start(results: Results) -> str | None:
    """Our method where each client starts a round from its own adapter."""
    for name, rows in results.rows.items():
        training = rows[0].training
        if rows[0].method == OURS and training and training.hyperparameters.get("local_start") == "own":
            return name
    return None


def _page(
    order: ReportOrder, known: Results, results: Results, alone: Mapping[int, Results], records: Records
) -> MainData:
    task, samples, paper = load_task(order.task), order.sign_flips, read_paper()
    metrics = (*task.metrics, LOSS)
    endpoints = (metrics[0].name, LOSS.name)
    ours = next((name for name, rows in results.rows.items() if rows[0].method == OURS), None)
    record, examples = records[next(iter(results.rows.values()))[0].id], read_examples(layout.examples("qmsum"))
    runs = dict(zip(sorted({row.seed for row in order.runs}), ascii_uppercase, strict=False))
    design, made = alone.get(min(runs)), read_audits()
    claims: dict[str, Sequence[Claim]] = {"claims": paper.claims}
    if instead := known.at_converging_rates():
        claims["converging"] = of_other_runs(paper.claims, instead)
    judged = {
        about: judge(own, known.scored, known.scored_by_seed, known.converged, samples) for about, own in claims.items()
    }
    audited = next((row.seed for row in runs_of_audits()[ANEW]), min(runs))
    kept, first = (known.scored_by_seed.get(seed, {}) for seed in (audited, min(runs)))
    seen = {row.meeting for own in first.values() for row in own}
    otherwise = otherwise_records(tables_otherwise(made, kept), ours, metrics[0].name)
    return MainData(
        order=order.model_copy(update={"precision": record["precision"]}),
        notes=record,
        cut=Cut(**record["cut"]),
        results=results,
        metrics=metrics,
        comparisons=differences(results, ours, rivals(paper.claims, ours), endpoints, samples) if ours else [],
        claims=judged["claims"],
        converging=judged.get("converging", ()),
        audits={
            about: robustness_of(own, known, _validated(examples.values()), seen, samples)
            for about, own in judged.items()
        },
        orientation=orientation_of(task, examples, next(iter(results.scored.values())), use_stemmer=order.use_stemmer),
        paper=read_table(layout.PAPER_RESULTS),
        selective=ours,
        tau=knob_of(results, ours, "tau") if ours else 0.0,
        runs=runs,
        parts={f"Run {runs[seed]} alone: seed {seed}": own for seed, own in alone.items()} if len(alone) > 1 else {},
        design=design,
        own_start=differences(design, _own_start(design), (), endpoints, samples) if design else [],
        otherwise=otherwise,
        other_tables=other_tables(otherwise, made, metrics),
        written=written_by_round(made[BY_ROUND].rows, metrics[0].name) if BY_ROUND in made else {},
        missing=missing(),
        made_before=_made_before(records),
        command=COMMAND,
    )
