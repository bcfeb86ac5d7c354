"""Scores of every run -> reports/metrics.json, the tables, the figures and reports/report.html.

Which runs there are is read from the plan, never from a folder: a run that left params.yaml leaves every table.
"""

from __future__ import annotations

from typing import Any

import torch

from pipeline import layout
from pipeline.analysis.distilled import client_tally, merge, summarize
from pipeline.analysis.words import Tally
from pipeline.encoded import read_encoded
from pipeline.evaluation.scores import MEAN, Scored, intervals_of, over_seeds, significance
from pipeline.federated.wire import full_model_bytes
from pipeline.figures import learning_curves, main_scores, parts_of_speech, share_distilled, traffic
from pipeline.figures.report import COLUMNS, ReportData, best_rounds, labels, render, selective_tau
from pipeline.figures.style import save
from pipeline.files import read_json, read_jsonl, write_json, write_text
from pipeline.loader import Loader
from pipeline.model.adapter import read_adapter
from pipeline.model.loading import load_backbone
from pipeline.progress import progress, say
from pipeline.spec import MainSpec, RunRow, read_spec
from pipeline.tables import read_table, write_table

OURS = "AdaFedSelectKD"

Metrics = dict[str, dict[str, dict[str, Any]]]
"""run -> client -> figures."""
SIGNIFICANCE_COLUMNS = (
    "metric",
    "run",
    "against",
    "client",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "smallest_detectable",
)
POS_COLUMNS = (
    "client",
    "pos",
    "words",
    "distilled",
    "base_rate",
    "distilled_given_pos",
    "pos_given_distilled",
    "pos_given_not_distilled",
    "lift",
)


def run() -> None:
    spec = read_spec(layout.stage_spec("main"), MainSpec)
    by_name: dict[str, list[RunRow]] = {}
    for row in spec.runs:
        by_name.setdefault(row.name, []).append(row)
    scores = {row.id: read_json(layout.SCORES / f"{row.id}.json") for row in spec.runs}
    scored = {name: over_seeds([scores[r.id]["examples"] for r in rows]) for name, rows in by_name.items()}
    metrics, by_seed = _metrics(spec, by_name, scored, scores)
    histories = {
        name: [line for r in rows for line in read_table(layout.MODELS / r.id / "history.csv")]
        for name, rows in by_name.items()
    }
    trained = {name: lines for name, lines in histories.items() if lines}
    ours = next((name for name, rows in by_name.items() if rows[0].method == OURS), None)
    significance = _significance(spec, by_name, scored, ours)
    pos, sensitivities = _parts_of_speech(by_name, ours)
    first = spec.runs[0].id
    data = ReportData(
        spec=spec,
        notes=read_json(layout.PREPARED / "notes.json"),
        encoded=read_encoded(first).index,
        metrics=metrics,
        histories=trained,
        significance=significance,
        paper=read_table(layout.PAPER_RESULTS),
        pos=pos,
        sensitivities=sensitivities,
        selective=ours,
        predictions={n: read_jsonl(layout.predictions(rows[0].id)) for n, rows in by_name.items()},
        lens=read_json(layout.LENS / f"{by_name[ours][0].id}.json") if ours else [],
    )
    _draw(data, [c for c in metrics[next(iter(metrics))] if c != MEAN], by_seed)
    _write_main_table(data)
    write_text(layout.REPORT, render(data, layout.FIGURES))
    say(f"main: {layout.REPORT} is ready")


def _metrics(
    spec: MainSpec, by_name: dict[str, list[RunRow]], scored: dict[str, list[Scored]], scores: dict[str, Any]
) -> tuple[Metrics, list[Metrics]]:
    """metrics.json over seeds, and a file a seed beside it: what both hold."""
    metrics: Metrics = {}
    with progress("main: intervals", len(by_name)) as advance:
        for name, rows in by_name.items():
            metrics[name] = intervals_of(scored[name], spec.bootstrap_samples)
            _add_other_losses(metrics[name], [scores[row.id]["clients"] for row in rows])
            advance(1)
    write_json(layout.METRICS, metrics)
    by_seed = []
    seeds = sorted({row.seed for row in spec.runs})
    for seed in seeds:
        one = metrics
        if len(seeds) > 1:
            own = {name: scores[layout.run_id(name, seed)] for name in by_name}
            one = {name: intervals_of(over_seeds([s["examples"]]), spec.bootstrap_samples) for name, s in own.items()}
            for name, figures in one.items():
                _add_other_losses(figures, [own[name]["clients"]])
        write_json(layout.SEED_METRICS / f"seed-{seed}.json", one)
        by_seed.append(one)
    return metrics, by_seed


def _add_other_losses(figures: dict[str, dict[str, Any]], seeds: list[dict[str, dict[str, Any]]]) -> None:
    """Test loss of the last round's model and of the server's, where there is one: the mean over seeds, no interval."""
    for client, own in figures.items():
        for other in ("last_loss", "server_loss"):
            found = [clients[client][other] for clients in seeds if other in clients.get(client, ())]
            if len(found) == len(seeds):
                own[other] = round(sum(found) / len(found), 4)


def _significance(
    spec: MainSpec, by_name: dict[str, list[RunRow]], scored: dict[str, list[Scored]], ours: str | None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if ours is not None:
        rows = significance(
            scored,
            ours,
            {name: runs[0].kind for name, runs in by_name.items()},
            bootstrap_samples=spec.bootstrap_samples,
            permutation_samples=spec.permutation_samples,
        )
    write_table(layout.TABLES / "significance.csv", rows, SIGNIFICANCE_COLUMNS)
    return rows


def _parts_of_speech(
    by_name: dict[str, list[RunRow]], ours: str | None
) -> tuple[list[dict[str, Any]], dict[str, dict[str, float]]]:
    tallies: dict[str, list[Tally]] = {}
    if ours is not None:
        first = by_name[ours][0]
        backbone = load_backbone(layout.BACKBONE, first.params["adapted_layers"], torch.device("cpu"))
        loader = Loader(torch.device("cpu"))
        for row in by_name[ours]:
            bits = read_adapter(layout.MODELS / row.id / "distilled.safetensors")
            history = read_table(layout.MODELS / row.id / "history.csv")
            for client, splits in read_encoded(row.id).clients.items():
                tokens = [loader.training([entry.key])[0]["targets"].tolist() for entry in splits["train"]]
                passes = best_rounds(history, client)[0] * row.params["local_epochs"]
                tallies.setdefault(client, []).append(client_tally(bits[client], tokens, backbone.pieces, passes))
    rows, sensitivities = summarize({client: merge(counts) for client, counts in tallies.items()})
    write_table(layout.TABLES / "pos_kd.csv", rows, POS_COLUMNS)
    return rows, sensitivities


def _draw(data: ReportData, clients: list[str], by_seed: list[Metrics]) -> None:
    named = labels(data.spec.runs)
    save(main_scores.draw(data.metrics, by_seed, named), layout.FIGURES, "main_scores")
    curves = {named[run]: rows for run, rows in data.histories.items()}
    save(learning_curves.draw(curves, clients), layout.FIGURES, "learning_curves")
    parameters = (layout.BACKBONE / "model.safetensors").stat().st_size // 4
    save(traffic.draw(curves, full_model_bytes(parameters), len(by_seed)), layout.FIGURES, "traffic")
    if data.selective:
        selective = data.histories[data.selective]
        save(share_distilled.draw(selective, clients, selective_tau(data)), layout.FIGURES, "share_distilled")
        for client in dict.fromkeys(row["client"] for row in data.pos):
            save(parts_of_speech.draw(data.pos, client), layout.FIGURES, f"pos_{client}")


def _write_main_table(data: ReportData) -> None:
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
    write_table(layout.TABLES / "main.csv", rows)
