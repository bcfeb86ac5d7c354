"""results -> the page of a long experiment: its tables, figures and verdicts, from what is committed of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.corpora.example import read_examples
from pipeline.evaluation.claims import Judged, judge
from pipeline.evaluation.scores import significance
from pipeline.federated.methods import OURS
from pipeline.plan.orders import ReportOrder, RunRow, read_order
from pipeline.report.audit_rows import Change, audit_rows, other_tables
from pipeline.report.claim_rows import claim_record
from pipeline.report.main_figures import draw
from pipeline.report.main_page import MainPage, render
from pipeline.report.main_tables import history_rows, main_table
from pipeline.report.paper import read_paper
from pipeline.runs.audits import read_audits
from pipeline.runs.kept import changed_since, missing, read_kept, rounds_of
from pipeline.runs.metrics import plain, small_metrics, write_metrics
from pipeline.runs.results import Results, knob_of, results_of
from pipeline.runs.truncation import Cut
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table

COMMAND = "make page"
PARTS = ("A", "B", "C")
Kept = Mapping[str, Mapping[str, Any]]
"""Run id -> what is kept of it."""


def run() -> None:
    order = read_order(layout.order("report"), ReportOrder)
    rows, kept = read_kept(order.runs)
    files = {run: own["scores"] for run, own in kept.items()}
    rounds = {row.id: rounds_of(kept[row.id], row.seed) for row in rows}
    seeds = whole_seeds(rows, order.runs)
    everywhere = [row for row in rows if row.seed in seeds and _is_at_all(row.name, seeds, rows)] or rows
    results = results_of(everywhere, files, rounds, order.sign_flips, "page")
    parts = {
        f"Run {part} alone: seed {seed}": results_of(
            [row for row in rows if row.seed == seed], files, rounds, order.sign_flips, f"run {part}"
        )
        for part, seed in zip(PARTS, sorted({row.seed for row in order.runs}), strict=False)
        if seed in {row.seed for row in rows}
    }
    data = _page(order, results, parts, kept)
    folder = layout.figures(layout.MAIN)
    empty_folder(folder)
    write_json(layout.METRICS, small_metrics(results.metrics, (data.metrics[0].name, LOSS.name)))
    write_metrics(layout.MAIN, results.metrics, {})
    for seed, own in ((seed, own) for part in parts.values() for seed, own in part.by_seed.items()):
        write_json(layout.seed_metrics(layout.MAIN, seed), plain(own))
    told = {"claims": [claim_record(one) for one in data.claims], "audits": list(data.audits)}
    write_json(layout.PAPER_METRICS, told)
    write_table(layout.SIGNIFICANCE, [one.to_row() for one in data.comparisons])
    write_table(layout.MAIN_TABLE, main_table(data))
    write_table(layout.REPORTS / layout.HISTORY, *history_rows(results.histories))
    draw(data, folder)
    write_text(layout.REPORT, render(data, folder))
    say(f"page: {layout.REPORT} is ready")


def whole_seeds(kept: Sequence[RunRow], planned: Sequence[RunRow]) -> list[int]:
    """The seeds at which every run of the main table is kept; where there is none, those of any."""
    known = {(row.name, row.seed) for row in kept}
    wanted: dict[int, set[tuple[str, int]]] = {}
    for row in planned:
        if layout.group_of(row.id) == layout.MAIN:
            wanted.setdefault(row.seed, set()).add((row.name, row.seed))
    return [seed for seed, own in sorted(wanted.items()) if own <= known] or sorted({row.seed for row in kept})


def _is_at_all(name: str, seeds: Sequence[int], rows: Sequence[RunRow]) -> bool:
    """Means over other meetings than a row beside it has would say nothing."""
    return {row.seed for row in rows if row.name == name} >= set(seeds)


def _made_before(files: Kept) -> str:
    count = len(changed_since(files))
    verb = "was" if count == 1 else "were"
    return f"{count} of {len(files)} results {verb} made by an earlier version of this code" if count else ""


def _validated() -> set[str]:
    """The official validation meetings, on whose losses rates and knobs were chosen."""
    examples = read_examples(layout.examples("qmsum"))
    return {example.meeting for example in examples.values() if example.split == "val"}


def _page(
    order: ReportOrder, results: Results, parts: dict[str, Results], files: dict[str, dict[str, Any]]
) -> MainPage:
    paper, metrics = read_paper(), (*load_task(order.task).metrics, LOSS)
    ours = next((name for name, rows in results.rows.items() if rows[0].method == OURS), None)
    named = {claim.theirs for claim in paper.claims if claim.family and claim.ours == ours}
    endpoints = (metrics[0].name, LOSS.name)
    compared = {name: own for name, own in results.scored.items() if metrics[0].name in own[0].values}
    kept = files[next(iter(results.rows.values()))[0].id]

    def judged(change: Change) -> list[Judged]:
        by_seed = [change(own) for own in results.seeds]
        return judge(paper.claims, change(results.scored), by_seed, results.converged, order.sign_flips)

    claims = judged(lambda of: of)
    return MainPage(
        order=order,
        notes=kept,
        cut=Cut(**kept["cut"]),
        results=results,
        metrics=metrics,
        comparisons=significance(compared, ours, named, endpoints, order.sign_flips) if ours else [],
        claims=claims,
        audits=audit_rows(claims, results.scored, judged, _validated()),
        other_tables=other_tables(read_audits(), next(iter(parts.values())).metrics, metrics[0]),
        paper=read_table(layout.PAPER_RESULTS),
        selective=ours,
        tau=knob_of(results, ours, "tau") if ours else 0.0,
        parts=parts if len(parts) > 1 else {},
        design=next(iter(parts.values())),
        missing=missing(),
        made_before=_made_before(files),
        command=COMMAND,
    )
