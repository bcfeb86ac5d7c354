"""Scores of all runs -> reports/paper.html, a section a table or figure of the paper, and reports/paper.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from pipeline import layout
from pipeline.encoded import read_encoded
from pipeline.evaluation.claims import Converged, Judged, judge
from pipeline.evaluation.other_claims import best_client, best_of, distilled_words
from pipeline.federated.wire import full_model_bytes
from pipeline.figures import comparison, extras
from pipeline.figures.page import embedded
from pipeline.figures.paper import PaperData, render
from pipeline.figures.report import labels
from pipeline.figures.sections import Section, sections
from pipeline.figures.style import save
from pipeline.files import empty_folder, read_json, read_jsonl, write_json, write_text
from pipeline.progress import say
from pipeline.results import Metrics, Results, has_converged, read_full, read_results, side_by_side
from pipeline.spec import ReportSpec, read_spec
from pipeline.tables import read_table

SELECTIVE = "fedselectkd"
PAPERS_TAU = 5.0
SENDING = (
    "fedavg-base",
    "fedkd-base",
    "fedselectkd-base",
    "fedopt",
    "fedprox",
    "fednova",
    "fedavgm",
    "scaffold",
    "ditto",
)
"""Runs of the same clients and rounds, whose bytes can be compared."""


def run() -> None:
    spec = read_spec(layout.stage_spec("report"), ReportSpec)
    results = read_results(spec.runs, spec.bootstrap_samples, "report")
    for folder in (layout.figures(layout.MORE), layout.seed_metrics(layout.MORE, 0).parent):
        empty_folder(folder)
    further = [name for name, rows in results.rows.items() if layout.group_of(rows[0].id) == layout.MORE]
    for seed, metrics in results.by_seed.items():
        write_json(layout.seed_metrics(layout.MORE, seed), {name: metrics[name] for name in further})
    paper = read_table(layout.PAPER_RESULTS)
    found = sections(paper)
    judged = _judged(spec, found, results)
    full = _judged_full(spec, found)
    write_json(
        layout.PAPER_METRICS,
        {
            "runs": {name: results.metrics[name] for name in further},
            "claims": {study: [_record(one) for one in found] for study, found in judged.items()},
            "claims_on_all_of_qmsum": [_record(one) for one in full.values()],
        },
    )
    compared = {study: side_by_side(results, names, spec.bootstrap_samples) for study, names in spec.studies.items()}
    _draw(spec, compared)
    extra = _extra(spec, results)
    data = PaperData(
        spec=spec,
        results=results,
        sections=found,
        judged=judged,
        full=full,
        paper=paper,
        sources={c: read_json(layout.notes(c))["source"] | _span_end(c) for c in spec.corpora},
        statistics={c: read_table(layout.data_statistics(c)) for c in spec.corpora},
        extra=extra,
        compared=compared,
        indices={row.setting: read_encoded(row.id).index for row in reversed(spec.runs)},
    )
    write_text(layout.PAPER_REPORT, render(data, layout.figures(layout.MORE)))
    say(f"report: {layout.PAPER_REPORT} is ready")


def _span_end(corpus: str) -> dict[str, Any]:
    return {"span_end": read_json(layout.notes(corpus))["span_end"]}


def _judged(spec: ReportSpec, found: list[Section], results: Results) -> dict[str, list[Judged]]:
    """Every section's claims, those that compare two runs and the others."""
    scored, samples = results.scored, spec.bootstrap_samples
    converged = _convergence(results.histories)
    judged = {s.study: [judge(claim, scored, converged, samples) for claim in s.claims] for s in found}
    taus = {name: extras.knob_of(results, name, "tau") for name in spec.studies.get("tau", ()) if name in scored}
    five = next((name for name, tau in taus.items() if tau == PAPERS_TAU), "")
    others = [name for name, tau in taus.items() if tau != PAPERS_TAU]
    judged["tau"].append(best_of("τ = 5 is the best threshold", "Fig. 4", five, others, scored, converged, samples))
    balanced = f"{SELECTIVE}-balanced"
    judged["noniid"].append(
        best_client(
            "Committee does best when clients are balanced",
            "Fig. 7",
            balanced,
            "Committee",
            scored,
            converged=balanced not in scored or converged(balanced, ()),
            samples=samples,
        )
    )
    judged["words"] += distilled_words(read_table(layout.TABLES / "pos_kd.csv"), SELECTIVE)
    return judged


def _judged_full(spec: ReportSpec, found: list[Section]) -> dict[str, Judged]:
    """The main table's claims put to what `make repro-full` left, by their text."""
    scored, histories = read_full()
    claims = next(section.claims for section in found if section.study == layout.MAIN)
    judged = [judge(claim, scored, _convergence(histories), spec.bootstrap_samples) for claim in claims]
    return {one.claim.text: one for one in judged if one.interval is not None}


def _convergence(histories: Mapping[str, Sequence[Mapping[str, str]]]) -> Converged:
    return lambda run, clients: has_converged(histories[run], clients)


def _record(one: Judged) -> dict[str, Any]:
    interval = None if one.interval is None else {k: round(v, 4) for k, v in asdict(one.interval).items()}
    return {
        "claim": one.claim.text,
        "ours": one.claim.ours,
        "theirs": one.claim.theirs,
        "metric": one.claim.metric,
        "paper": one.claim.effect,
        "difference": interval,
        "by_interval": one.by_interval,
        "verdict": one.verdict,
    }


def _extra(spec: ReportSpec, results: Results) -> dict[str, list[Markup]]:
    """Section -> its pieces beyond a comparison of runs."""
    canvas = extras.Canvas(layout.figures(layout.MORE))
    analysis = {
        folder.name: {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
        for folder in sorted(layout.ANALYSIS.iterdir())
    }
    tau = spec.tau if isinstance(spec.tau, float) else math.nan
    rated = layout.RATINGS / "ratings.csv"
    pair = [name for name in (SELECTIVE, "fedavg") if name in results.rows]
    texts = {
        name: {row["id"]: row for row in read_jsonl(layout.predictions(results.rows[name][0].id))} for name in pair
    }
    parameters = (layout.BACKBONE / "model.safetensors").stat().st_size // 4
    main_figures = layout.figures(layout.MAIN)
    clients = list(dict.fromkeys(row["client"] for row in read_table(layout.TABLES / "pos_kd.csv")))
    return {
        "main": extras.orientation(analysis),
        "tau": extras.knob_sweep(canvas, results, spec.studies.get("tau", ()), "tau", "τ", tau),
        "lambda": extras.knob_sweep(canvas, results, spec.studies.get("lambda", ()), "lambda", "λ", spec.weight),
        "human": extras.ratings(canvas, read_table(rated) if rated.is_file() else [], "AdaFedSelectKD"),
        "words": [
            embedded(main_figures / f"pos_{client}.svg", f"{client}: words learned (a) with, (b) without distillation.")
            for client in clients
        ],
        "case": extras.median_cases(results, texts, SELECTIVE, "fedavg"),
        "mechanism": [
            *extras.scaled_weight(results, f"{SELECTIVE}-base", "kd-scaled"),
            *extras.teacher_deciles(canvas, analysis, tau),
        ],
        "matrix": extras.crossed_losses(canvas, analysis),
        "divergence": extras.divergences(canvas, analysis),
        "communication": extras.bytes_sent(canvas, results, SENDING, labels(spec.runs), full_model_bytes(parameters)),
    }


def _draw(spec: ReportSpec, compared: Mapping[str, Metrics]) -> None:
    named = labels(spec.runs)
    for study, shown in compared.items():
        if shown:
            metric = "average" if all("average" in figures["mean"] for figures in shown.values()) else "loss"
            save(comparison.draw(shown, named, metric), layout.figures(layout.MORE), study)
