"""Scores of all runs -> reports/paper.html, a section a table or figure of the paper, and reports/paper.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pipeline.evaluation.paper_scores import OURS
from pipeline.model.loading import weights_bytes
from pipeline.plan.orders import ReportSpec, read_spec
from pipeline.report import cases, extras, raters, sending, teachers, tuning
from pipeline.report.canvas import Canvas
from pipeline.report.claims.record import record_of
from pipeline.report.claims.section import FEDAVG_BASE, SELECTIVE, SELECTIVE_BASE
from pipeline.report.claims.sections import sections
from pipeline.report.claims.verdicts import SCALED, full_verdicts, verdicts_of
from pipeline.report.figures import comparison
from pipeline.report.figures.style import save
from pipeline.report.naming import colours, labels
from pipeline.report.page import MAIN_COMMAND, embedded
from pipeline.report.paper_page import PaperPage, render
from pipeline.report.ratings.sheets import of_these_summaries
from pipeline.runs.identity import record_identities
from pipeline.runs.index import read_encoded
from pipeline.runs.results import Metrics, Results, read_full, read_results, side_by_side, target_limit
from pipeline.runs.trained import planned_key
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, read_json, read_jsonl, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table

SENDING = ("algorithms", "hard")
"""Studies whose runs have the same clients and rounds, so that their bytes can be compared."""

POS_CAPTION = "{}: words learned (a) with, (b) without distillation. Run: {}. To make it again: " + MAIN_COMMAND + "."


def run() -> None:
    spec = read_spec(layout.stage_spec("report"), ReportSpec)
    results = read_results(spec.runs, spec.bootstrap_samples, "report")
    for folder in (layout.figures(layout.MORE), layout.metrics_of_seeds(layout.MORE)):
        empty_folder(folder)
    further = [name for name, rows in results.rows.items() if layout.group_of(rows[0].id) == layout.MORE]
    for seed, metrics in results.by_seed.items():
        write_json(layout.seed_metrics(layout.MORE, seed), {name: metrics[name] for name in further})
    rounds = [one.to_row(name) for name in further for one in results.histories[name]]
    write_table(layout.HISTORY_MORE, rounds)
    record_identities(layout.MORE, [row for name in further for row in results.rows[name]])
    paper = read_table(layout.PAPER_RESULTS)
    parts = sections(paper, spec.studies)
    shares = read_table(layout.REPORTS / layout.WORD_SHARES)
    ratings = of_these_summaries(spec.runs)
    judged = verdicts_of(parts, results, spec.studies, shares, ratings, spec.bootstrap_samples)
    full = read_full(spec)
    full_judged = full_verdicts(parts, full, spec.bootstrap_samples)
    write_json(
        layout.PAPER_METRICS,
        {
            "runs": {name: results.metrics[name] for name in further},
            "claims": {study: [record_of(one) for one in own] for study, own in judged.items()},
            "claims_on_all_of_qmsum": [record_of(one) for one in full_judged.values()],
        },
    )
    compared = {study: side_by_side(results, names, spec.bootstrap_samples) for study, names in spec.studies.items()}
    _draw(spec, compared, list(results.by_seed.values()))
    extra = _extra(spec, results, shares, ratings)
    first = _first_runs(spec, results)
    data = PaperPage(
        spec=spec,
        results=results,
        sections=parts,
        judged=judged,
        full=full_judged,
        full_scale=str(full),
        paper=paper,
        notes={corpus: read_json(layout.notes(corpus)) for corpus in spec.corpora},
        statistics={c: read_table(layout.data_statistics(c)) for c in spec.corpora},
        extra=extra,
        compared=compared,
        indices={setting: read_encoded(run).index for setting, run in first.items()},
        limits={setting: target_limit(run) for setting, run in first.items()},
        trainings={row.id: planned_key(row.id) for rows in results.rows.values() for row in rows},
    )
    write_text(layout.PAPER_REPORT, render(data, layout.figures(layout.MORE)))
    say(f"report: {layout.PAPER_REPORT} is ready")


def _first_runs(spec: ReportSpec, results: Results) -> dict[str, str]:
    """Setting -> its first run, of those that were made where there are any."""
    made = {row.id for rows in results.rows.values() for row in rows}
    first: dict[str, str] = {}
    for row in sorted(spec.runs, key=lambda row: row.id not in made):
        first.setdefault(row.setting, row.id)
    return first


def _extra(
    spec: ReportSpec, results: Results, shares: Sequence[Mapping[str, str]], ratings: Sequence[Mapping[str, str]]
) -> dict[str, list[Markup]]:
    """Section -> its pieces beyond a comparison of runs."""
    canvas = Canvas(layout.figures(layout.MORE))
    studied = [run for study in SENDING for run in spec.studies.get(study, ())]
    sending_runs = list(dict.fromkeys([FEDAVG_BASE, "fedkd-base", *studied]))
    trials = read_table(layout.SEARCH_TABLE) if layout.SEARCH_TABLE.is_file() else []
    analysis = {
        folder.name: {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}
        for folder in sorted(layout.ANALYSIS.iterdir())
    }
    pair = [name for name in (SELECTIVE, "fedavg") if name in results.rows]
    texts = {
        name: {row["id"]: row for row in read_jsonl(layout.predictions(results.rows[name][0].id))} for name in pair
    }
    main_figures = layout.figures(layout.MAIN)
    pos = read_table(layout.POS_SHARES)
    clients = list(dict.fromkeys(row["client"] for row in pos))
    return {
        "main": extras.orientation(analysis),
        "algorithms": tuning.tuned(results, trials, spec.studies.get("algorithms", ())),
        "hard": tuning.tuned(results, trials, spec.studies.get("hard", ())),
        "noniid": extras.untrained(results.metrics, "zeroshot"),
        "tau": tuning.knob_sweep(canvas, results, spec.studies.get("tau", ()), "tau", "τ", SELECTIVE_BASE),
        "lambda": tuning.knob_sweep(canvas, results, spec.studies.get("lambda", ()), "lambda", "λ", SELECTIVE_BASE),
        "human": raters.ratings(canvas, ratings, OURS, spec.bootstrap_samples),
        "sampling": extras.client_rounds_told(results, spec.studies.get("sampling", ())),
        "words": [
            *extras.words_distilled(shares, pos),
            *(
                embedded(main_figures / f"pos_{client}.svg", POS_CAPTION.format(client, shares[0]["run"]))
                for client in clients
            ),
        ],
        "case": cases.median_cases(results, texts, SELECTIVE, "fedavg"),
        "mechanism": [
            *tuning.scaled_weight(results, SELECTIVE_BASE, SCALED),
            *tuning.tuned(results, trials, spec.studies.get("mechanism", ())),
            *teachers.teacher_and_student(canvas, results, SELECTIVE),
            *teachers.teacher_deciles(canvas, results, analysis),
        ],
        "matrix": extras.crossed_losses(canvas, analysis),
        "divergence": extras.divergences(canvas, analysis),
        "communication": sending.bytes_sent(
            canvas, results, sending_runs, labels(spec.runs), colours(spec.runs), weights_bytes(layout.BACKBONE)
        ),
    }


def _draw(spec: ReportSpec, compared: Mapping[str, Metrics], by_seed: Sequence[Metrics]) -> None:
    named, coloured = labels(spec.runs), colours(spec.runs)
    for study, shown in compared.items():
        if shown:
            save(comparison.draw(shown, by_seed, named, coloured), layout.figures(layout.MORE), study)
