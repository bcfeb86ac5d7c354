"""Scores of every run -> reports/metrics.json, the tables, the figures and reports/report.html.

Which runs there are is read from the plan, never from a folder: a run that left params.yaml leaves every table.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from pipeline.evaluation.distilled import SHARE_COLUMNS, merge, shares_of, summarize
from pipeline.evaluation.paper_scores import OURS
from pipeline.evaluation.scores import MEAN, SIGNIFICANCE_COLUMNS, significance
from pipeline.evaluation.words import POS_COLUMNS, Tally
from pipeline.federated.history import best_rounds
from pipeline.model.loader import Loader
from pipeline.model.loading import load_backbone, weights_bytes
from pipeline.plan.orders import MainSpec, read_spec
from pipeline.report.figures import learning_curves, main_scores, parts_of_speech, share_distilled, traffic
from pipeline.report.figures.style import save
from pipeline.report.main_page import COLUMNS, MainPage, render
from pipeline.report.naming import colours, labels
from pipeline.runs.analysis import words_of_seeds
from pipeline.runs.identity import record_identities
from pipeline.runs.index import read_encoded
from pipeline.runs.results import Metrics, Results, knob_of, read_results, target_limit
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table


def run() -> None:
    spec = read_spec(layout.stage_spec("main"), MainSpec)
    results = read_results(spec.runs, spec.bootstrap_samples, "main")
    write_json(layout.METRICS, results.metrics)
    for seed, metrics in results.by_seed.items():
        write_json(layout.seed_metrics(layout.MAIN, seed), metrics)
    record_identities(layout.MAIN, spec.runs)
    ours = next((name for name, rows in results.rows.items() if rows[0].method == OURS), None)
    significance = _significance(spec, results, ours)
    pos, shares, sensitivities = _parts_of_speech(spec, results, ours)
    data = MainPage(
        spec=spec,
        notes=read_json(layout.notes("qmsum")),
        encoded=read_encoded(spec.runs[0].id).index,
        target_limit=target_limit(spec.runs[0].id),
        metrics=results.metrics,
        histories={name: lines for name, lines in results.histories.items() if lines},
        significance=significance,
        paper=read_table(layout.PAPER_RESULTS),
        pos=pos,
        shares=shares,
        sensitivities=sensitivities,
        selective=ours,
        tau=knob_of(results, ours, "tau") if ours else math.nan,
        predictions={n: read_jsonl(layout.predictions(rows[0].id)) for n, rows in results.rows.items()},
        lens=read_json(layout.lens(results.rows[ours][0].id)) if ours else [],
    )
    _draw(data, [c for c in next(iter(results.metrics.values())) if c != MEAN], list(results.by_seed.values()))
    _write_main_table(data)
    _write_history(results)
    write_text(layout.REPORT, render(data, layout.figures(layout.MAIN)))
    say(f"main: {layout.REPORT} is ready")


def _significance(spec: MainSpec, results: Results, ours: str | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if ours is not None:
        rows = significance(
            results.scored,
            ours,
            {name: runs[0].kind for name, runs in results.rows.items()},
            bootstrap_samples=spec.bootstrap_samples,
            permutation_samples=spec.permutation_samples,
        )
    write_table(layout.SIGNIFICANCE, rows, SIGNIFICANCE_COLUMNS)
    return rows


def _parts_of_speech(
    spec: MainSpec, results: Results, ours: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, dict[str, float]]]:
    tallies: dict[str, dict[str, Tally]] = {}
    own = results.rows[ours] if ours is not None else []
    if own and own[0].training is not None:
        cpu = torch.device("cpu")
        backbone = load_backbone(layout.BACKBONE, own[0].training.adapted_layers, cpu)
        tallies = words_of_seeds(backbone, Loader(cpu), own)
    rows, sensitivities = summarize({client: merge(meetings.values()) for client, meetings in tallies.items()})
    write_table(layout.POS_SHARES, rows, POS_COLUMNS)
    shares = [
        row
        for client, meetings in tallies.items()
        for row in shares_of(own[0].name, client, meetings, spec.bootstrap_samples)
    ]
    write_table(layout.REPORTS / layout.WORD_SHARES, shares, SHARE_COLUMNS)
    return rows, shares, sensitivities


def _draw(data: MainPage, clients: list[str], by_seed: list[Metrics]) -> None:
    named = labels(data.spec.runs)
    coloured = colours(data.spec.runs)
    save(main_scores.draw(data.metrics, by_seed, named, coloured), layout.figures(layout.MAIN), "main_scores")
    curves = {named[run]: rows for run, rows in data.histories.items()}
    of_curves = {named[run]: coloured[run] for run in data.histories}
    save(learning_curves.draw(curves, clients, of_curves), layout.figures(layout.MAIN), "learning_curves")
    save(traffic.draw(curves, weights_bytes(layout.BACKBONE), len(by_seed)), layout.figures(layout.MAIN), "traffic")
    if data.selective:
        selective = data.histories[data.selective]
        save(
            share_distilled.draw(selective, clients, data.tau),
            layout.figures(layout.MAIN),
            "share_distilled",
        )
        for client in dict.fromkeys(row["client"] for row in data.pos):
            save(parts_of_speech.draw(data.pos, client), layout.figures(layout.MAIN), f"pos_{client}")


def _write_history(results: Results) -> None:
    """history.csv: every round of every run, for what is read where models/ is not."""
    rows = [one.to_row(name) for name, history in results.histories.items() for one in history]
    write_table(layout.REPORTS / layout.HISTORY, rows)


def _write_main_table(data: MainPage) -> None:
    """main.csv: a row a client and run; each figure with its interval."""
    named = labels(data.spec.runs)
    names = [f"{c.metric}{end}" for c in COLUMNS for end in ("", "_low", "_high")]
    rows = [
        {
            "client": client,
            "run": run,
            "method": named[run],
            **{n: figures[client][n] for n in names},
            "best_round": "/".join(map(str, best_rounds(data.histories.get(run, ()), client))),
        }
        for client in next(iter(data.metrics.values()))
        for run, figures in data.metrics.items()
    ]
    write_table(layout.MAIN_TABLE, rows)
