"""Pieces of the page on the paper that are no comparison of runs and have no file of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from markupsafe import Markup

from pipeline.evaluation.scores import MEAN
from pipeline.federated.history import client_rounds
from pipeline.report.canvas import Canvas
from pipeline.report.figures import heatmap
from pipeline.report.figures.parts_of_speech import share_text
from pipeline.report.page import table
from pipeline.runs.results import Metrics, Results

Analysis = Mapping[str, Mapping[str, Any]]
"""What the stage `analyze` wrote: kind -> name of a run or manifest -> its table."""


def client_rounds_told(results: Results, runs: Sequence[str]) -> list[Markup]:
    """How many times a client trained in each run: what "equal client-rounds" are equal in."""
    counts = {run: fmean(client_rounds(results.histories[run]).values()) for run in runs if results.histories.get(run)}
    told = ", ".join(f"{run} {count:g}" for run, count in counts.items())
    return [Markup('<p class="note">Client-rounds: {}.</p>').format(told)] if counts else []


def words_distilled(shares: Sequence[Mapping[str, str]], pos: Sequence[Mapping[str, str]]) -> list[Markup]:
    """Our counterpart of the paper's 86, 88 and 89%, and how it differs from one part of speech to another.

    Args:
        shares: rows of word_shares.csv.
        pos: rows of pos_kd.csv.
    """
    found = [f"{row['client']} {share_text(row)}" for row in shares if row["share"] == "distilled"]
    if not found:
        return []
    clients = list(dict.fromkeys(row["client"] for row in pos))
    cells = {(row["client"], row["pos"]): row for row in pos}
    head = ["distilled, of a part of speech (lift)", *clients]
    rows = [
        [part, *(_distilled(cells.get((client, part))) for client in clients)]
        for part in sorted({row["pos"] for row in pos})
    ]
    return [
        Markup('<p class="note">Words learned with distillation: {}.</p>').format("; ".join(found)),
        table(head, rows),
        Markup(
            '<p class="note">Lift: the share of a part of speech among the distilled words, over that among all words; '
            "above 1, it is distilled more often than words are.</p>"
        ),
    ]


def _distilled(row: Mapping[str, str] | None) -> str:
    return "–" if row is None else f"{float(row['distilled_given_pos']):.0%} ({float(row['lift']):.2f})"


def orientation(analysis: Analysis) -> list[Markup]:
    """Rows of the main table that cost nothing."""
    rows = analysis.get("orientation", {}).get("turns", {})
    if not rows:
        return []
    clients = list(next(iter(rows.values())))
    head = ["for orientation, average ROUGE", *clients, "mean"]
    scores = {name: [own[client]["average"] for client in clients] for name, own in rows.items()}
    return [table(head, ([name, *(f"{score:.2f}" for score in [*own, fmean(own)])] for name, own in scores.items()))]


def untrained(metrics: Metrics, run: str) -> list[Markup]:
    """How the backbone does before any training, a client: who is easy to summarize."""
    own = {client: figures["average"] for client, figures in metrics.get(run, {}).items() if client != MEAN}
    told = ", ".join(f"{client} {value:.2f}" for client, value in own.items())
    return (
        [Markup('<p class="note">Average ROUGE without any training, on whole test sets: {}.</p>').format(told)]
        if own
        else []
    )


def crossed_losses(canvas: Canvas, analysis: Analysis) -> list[Markup]:
    tables = analysis.get("crossed", {})
    if not tables:
        return []
    caption = (
        "Every client's adapter on every client's test set: loss of the reference, nats a token, less is better; the "
        f"darker, the better within a column. Runs: {', '.join(tables)}."
    )
    return [canvas.place(heatmap.draw(tables, "trained by", "tested on", "Blues_r"), "crossed", caption)]


def divergences(canvas: Canvas, analysis: Analysis) -> list[Markup]:
    pieces = []
    for name, found in analysis.get("divergence", {}).items():
        sizes = ", ".join(f"{client} {count}" for client, count in found["examples"].items())
        caption = (
            f"Jensen-Shannon divergence in bits between the training data of the clients of {name}: over topics "
            "(clusters of sentence embeddings of the sources, of which the model reads the first 256 word pieces) and "
            f"over the words of the references. Training examples: {sizes}. Random groups of these sizes would be "
            f"{found['by_chance']['topics']:.2f} and {found['by_chance']['words']:.2f} apart on average."
        )
        figure = heatmap.draw({"topics": found["topics"], "words": found["words"]}, "", "", limits=(0.0, 1.0))
        pieces.append(canvas.place(figure, f"divergence_{name}", caption))
    return pieces
