"""results -> the page of a long experiment: its tables, figures and verdicts, from what is committed of its runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipeline.corpora.example import Example, read_examples
from pipeline.evaluation.claims import Judged, judge, of_other_runs
from pipeline.evaluation.scores import Comparison, significance
from pipeline.federated.methods import OURS
from pipeline.plan.orders import ReportOrder, RunRow, read_order
from pipeline.report.audit_rows import Change, audit_rows, other_tables, written_by_round
from pipeline.report.claim_rows import claim_record
from pipeline.report.main_figures import draw
from pipeline.report.main_page import MainPage, render
from pipeline.report.main_tables import history_rows, main_table
from pipeline.report.paper import read_paper
from pipeline.runs.audits import BY_ROUND, read_audits
from pipeline.runs.kept import changed_since, missing, read_kept, rounds_of
from pipeline.runs.metrics import plain, small_metrics, write_metrics
from pipeline.runs.orientation import orientation_of
from pipeline.runs.results import Results, knob_of, results_of, scores_of
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
    """
    Raises:
        QuorumError: no run is kept.
    """
    order = read_order(layout.order("report"), ReportOrder)
    rows, kept = read_kept(order.runs)
    files = {run: own["scores"] for run, own in kept.items()}
    rounds = {row.id: rounds_of(kept[row.id], row.seed) for row in rows}
    # A claim is judged on all meetings that its two runs were tested on; a table's rows have to share theirs.
    known = scores_of(rows, files, rounds)
    shared = of_whole_seeds(rows, order.runs)
    results = results_of(shared, files, rounds, order.sign_flips, "page")
    parts = {
        f"Run {part} alone: seed {seed}": results_of(own, files, rounds, order.sign_flips, f"run {part}")
        for part, seed in zip(PARTS, sorted({row.seed for row in order.runs}), strict=False)
        if (own := [row for row in rows if row.seed == seed])
    }
    data = _page(order, known, results, parts, kept)
    folder = layout.figures(layout.MAIN)
    empty_folder(folder)
    write_json(layout.METRICS, small_metrics(results.metrics, (data.metrics[0].name, LOSS.name)))
    write_metrics(layout.MAIN, results.metrics, {})
    for seed, figures in ((seed, figures) for part in parts.values() for seed, figures in part.by_seed.items()):
        write_json(layout.seed_metrics(layout.MAIN, seed), plain(figures))
    told = {"claims": [claim_record(one) for one in data.claims], "audits": list(data.audits)}
    write_json(layout.CLAIMS, told)
    write_table(layout.SIGNIFICANCE, [one.to_row() for one in data.comparisons])
    write_table(layout.MAIN_TABLE, main_table(data))
    write_table(layout.REPORTS / layout.HISTORY, *history_rows(known.histories))
    draw(data, folder)
    write_text(layout.REPORT, render(data, folder))
    say(f"page: {layout.REPORT} is ready")


def of_whole_seeds(kept: Sequence[RunRow], planned: Sequence[RunRow]) -> list[RunRow]:
    """Those of the kept runs that stand in one table: means over other meetings than a row beside has say nothing."""
    seeds = whole_seeds(kept, planned)
    seeds_of: dict[str, set[int]] = {}
    for row in kept:
        seeds_of.setdefault(row.name, set()).add(row.seed)
    return [row for row in kept if row.seed in seeds and seeds_of[row.name] >= set(seeds)] or list(kept)


def whole_seeds(kept: Sequence[RunRow], planned: Sequence[RunRow]) -> list[int]:
    """The seeds at which every run of the main table is kept; where there is none, those of any."""
    known = {(row.name, row.seed) for row in kept}
    wanted: dict[int, set[tuple[str, int]]] = {}
    for row in planned:
        if layout.group_of(row.id) == layout.MAIN:
            wanted.setdefault(row.seed, set()).add((row.name, row.seed))
    return [seed for seed, own in sorted(wanted.items()) if own <= known] or sorted({row.seed for row in kept})


def _made_before(files: Kept) -> str:
    count = len(changed_since(files))
    verb = "was" if count == 1 else "were"
    return f"{count} of {len(files)} results {verb} made with other code, packages or threads" if count else ""


def _validated(examples: Iterable[Example]) -> set[str]:
    """The official validation meetings, on whose losses rates and knobs were chosen."""
    return {example.meeting for example in examples if example.split == "val"}


def _seen(order: ReportOrder, known: Results) -> set[str]:
    """The test meetings of run A, which is the first seed."""
    rows = known.scored_by_seed.get(min(row.seed for row in order.runs), {})
    return {row.meeting for own in rows.values() for row in own}


def _own_start(results: Results) -> str | None:
    """Our method where each client starts a round from its own adapter."""
    for name, rows in results.rows.items():
        training = rows[0].training
        if rows[0].method == OURS and training and training.hyperparameters.get("local_start") == "own":
            return name
    return None


def _compared(
    results: Results, ours: str | None, named: Collection[str], endpoints: Sequence[str], samples: int
) -> list[Comparison]:
    """One run against all others that wrote summaries."""
    written = {name: own for name, own in results.scored.items() if endpoints[0] in own[0].values}
    return significance(written, ours, named, endpoints, samples) if ours in written else []


def _page(
    order: ReportOrder, known: Results, results: Results, parts: dict[str, Results], files: dict[str, dict[str, Any]]
) -> MainPage:
    paper, metrics = read_paper(), (*load_task(order.task).metrics, LOSS)
    ours = next((name for name, rows in results.rows.items() if rows[0].method == OURS), None)
    task, first = load_task(order.task), next(iter(parts.values()))
    named = {claim.theirs for claim in paper.claims if claim.family and claim.ours == ours}
    endpoints = (metrics[0].name, LOSS.name)
    kept, examples = files[next(iter(results.rows.values()))[0].id], read_examples(layout.examples("qmsum"))
    tested = next(iter(results.scored.values()))

    def judged(change: Change) -> list[Judged]:
        by_seed = [change(own) for own in known.seeds]
        return judge(paper.claims, change(known.scored), by_seed, known.converged, order.sign_flips)

    claims, made = judged(lambda of: of), read_audits()
    instead = known.at_converging_rates()
    others = of_other_runs(paper.claims, instead) if instead else ()
    converging = judge(others, known.scored, known.seeds, known.converged, order.sign_flips)
    return MainPage(
        order=order.model_copy(update={"precision": kept["precision"]}),
        notes=kept,
        cut=Cut(**kept["cut"]),
        results=results,
        metrics=metrics,
        comparisons=_compared(results, ours, named, endpoints, order.sign_flips),
        own_start=_compared(first, _own_start(first), (), endpoints, order.sign_flips),
        claims=claims,
        converging=converging,
        orientation=orientation_of(task, examples, tested, use_stemmer=order.use_stemmer),
        audits=audit_rows(
            claims, known.scored, known.seeds, judged, _validated(examples.values()), _seen(order, known), converging
        ),
        other_tables=other_tables(made, first.metrics, metrics[0]),
        written=written_by_round(made.get(BY_ROUND, []), metrics[0].name),
        paper=read_table(layout.PAPER_RESULTS),
        selective=ours,
        tau=knob_of(results, ours, "tau") if ours else 0.0,
        parts=parts if len(parts) > 1 else {},
        design=first,
        missing=missing(),
        made_before=_made_before(files),
        command=COMMAND,
    )
