"""Pieces of the page on the paper other than comparisons of runs: small tables, notes, and figures with captions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import pandas as pd
from markupsafe import Markup

from pipeline.evaluation.agreement import kappa, shares
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import MEAN, Scored
from pipeline.federated.history import best_validation_loss, client_rounds
from pipeline.plan.orders import RunRow
from pipeline.report.figures import heatmap, human, learning_curves, sweep, teacher
from pipeline.report.figures.parts_of_speech import share_text
from pipeline.report.figures.style import colour
from pipeline.report.page import Canvas, piece
from pipeline.runs.results import Metrics, Results, knob_of
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

Analysis = Mapping[str, Json]
"""Tables of the stage `analyze`: kind -> name of a run or manifest -> its table."""
Rows = Sequence[Mapping[str, str]]
"""Rows of a CSV file."""
Texts = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Run -> example -> its row of predictions."""


def rounds_of_clients(results: Results, runs: Sequence[str]) -> list[Markup]:
    """How many times a client trained in each run, the mean over clients."""
    counts = {run: fmean(client_rounds(results.histories[run]).values()) for run in runs if results.histories.get(run)}
    text = ", ".join(f"{run} {count:g}" for run, count in counts.items())
    return [piece("client_rounds", counts=text)] if counts else []


def words_learned(shares: Rows, pos: Rows) -> list[Markup]:
    """Our counterpart of the paper's 86, 88 and 89% of words distilled, and the shares by part of speech.

    Args:
        shares: rows of word_shares.csv.
        pos: rows of pos_kd.csv.
    """
    found = [f"{row['client']} {share_text(row)}" for row in shares if row["share"] == "distilled"]
    if not found:
        return []
    clients = list(dict.fromkeys(row["client"] for row in pos))
    cells = {(row["client"], row["pos"]): row for row in pos}
    rows = [
        [part, *(_distilled(cells.get((client, part))) for client in clients)]
        for part in sorted({row["pos"] for row in pos})
    ]
    head = ["distilled, of a part of speech (lift)", *clients]
    return [piece("words_learned", shares="; ".join(found)), piece("table", head=head, rows=rows), piece("lift")]


def _distilled(row: Mapping[str, str] | None) -> str:
    return "–" if row is None else f"{float(row['distilled_given_pos']):.0%} ({float(row['lift']):.2f})"


def untrained(metrics: Metrics, run: str, metric: Metric) -> list[Markup]:
    """Scores of the backbone before any training, a client."""
    own = {c: one.metrics[metric.name].value for c, one in metrics.get(run, {}).items() if c != MEAN}
    text = ", ".join(f"{client} {value:.2f}" for client, value in own.items())
    return [piece("untrained", metric=metric.title, scores=text)] if own else []


def crossed_losses(canvas: Canvas, analysis: Analysis) -> list[Markup]:
    """The loss of every client's adapter on every client's test set, as pictures."""
    tables = analysis.get("crossed", {})
    if not tables:
        return []
    figure = heatmap.draw(tables, "trained by", "tested on", "Blues_r")
    return [canvas.place(figure, "crossed", "crossed", runs=list(tables))]


def divergences(canvas: Canvas, analysis: Analysis) -> list[Markup]:
    """Divergences of topics and words between clients, a picture a setting and seed."""
    return [
        canvas.place(
            heatmap.draw({"topics": found["topics"], "words": found["words"]}, "", "", limits=(0.0, 1.0)),
            f"divergence_{name}",
            "divergence",
            setting=name,
            sizes=", ".join(f"{client} {count}" for client, count in found["examples"].items()),
            topics=f"{found['by_chance']['topics']:.2f}",
            words=f"{found['by_chance']['words']:.2f}",
        )
        for name, found in analysis.get("divergence", {}).items()
    ]


def ratings(canvas: Canvas, rows: Rows, ours: str, samples: int) -> list[Markup]:
    """Fig. 5: shares of wins, ties and losses and Fleiss' kappa, or a note that there are no ratings."""
    if not rows:
        return [piece("no_ratings")]
    by_method = {str(method): own for method, own in pd.DataFrame(rows).groupby("against", sort=False)}
    found, cells = {method: shares(own, samples) for method, own in by_method.items()}, []
    for method, own in by_method.items():
        # The figure has no room for the interval of a small share.
        texts = [f"{100 * one.value:.0f} ({one.times(100).span(0)})" for one in found[method].values()]
        agreement, subjects = kappa(own)
        cells.append([method, *texts, len(own), "–" if agreement is None else f"{agreement:.2f}", subjects])
    about = {"raters": len({row["rater"] for row in rows}), "methods": [ours, *found]}
    head = ["% of ratings, against", "win", "tie", "loss", "ratings", "Fleiss’ κ", "over pairs and criteria"]
    return [canvas.place(human.draw(found, ours), "human", "human", **about), piece("table", head=head, rows=cells)]


def median_cases(scored: Mapping[str, Sequence[Scored]], texts: Texts, metric: Metric) -> list[Markup]:
    """Table VIII by a rule: each client's test example with the median of ours − theirs in a metric.

    Args:
        scored: ours and theirs -> the scores of its examples at one seed.
        texts: the same two -> example -> its query, reference and prediction.
    """
    ours, theirs = scored
    other = {row.id: row for row in scored[theirs]}

    def gain(row: Scored) -> float:
        """Ours − theirs on an example."""
        return row.values[metric.name] - other[row.id].values[metric.name]

    pieces = []
    for client in dict.fromkeys(row.client for row in scored[ours]):
        own = sorted((row for row in scored[ours] if row.client == client), key=lambda row: (gain(row), row.id))
        chosen = own[len(own) // 2]
        mine, others = texts[ours][chosen.id], texts[theirs][chosen.id]
        pieces.append(
            piece(
                "case",
                client=client,
                query=mine["query"],
                reference=mine["reference"],
                ours=mine["prediction"],
                theirs=others["prediction"],
                gain=gain(chosen),
            )
        )
    return pieces


def teacher_deciles(canvas: Canvas, results: Results, analysis: Analysis) -> list[Markup]:
    """The teacher against the student by decile of the teacher's entropy, a figure a run."""
    runs = {row.id.replace("/", "-"): name for name, rows in results.rows.items() for row in rows}
    taus = {run: knob_of(results, runs[run], "tau") for run in analysis.get("deciles", {})}
    return [
        canvas.place(
            teacher.draw_deciles(found, taus[run]), f"deciles_{run}", "deciles", run=run, tau=f"{taus[run]:.3g}"
        )
        for run, found in analysis.get("deciles", {}).items()
    ]


def teacher_and_student(canvas: Canvas, results: Results, run: str) -> list[Markup]:
    """Validation loss of a run's students and teachers by round; nothing where no teacher was sent."""
    student = [one for one in results.histories.get(run, ()) if one.sent_validation_loss is not None]
    sent = [replace(one, validation_loss=one.sent_validation_loss) for one in student]
    if not sent:
        return []
    clients = list(dict.fromkeys(one.client for one in sent))
    coloured = {"student": colour(1), "teacher": colour(2)}
    figure = learning_curves.draw({"student": student, "teacher": sent}, clients, coloured)
    return [canvas.place(figure, f"teacher_{run}", "teacher_by_round", run=run)]


def knob_sweep(
    canvas: Canvas, results: Results, runs: Sequence[str], knob: str, name: str, usual: str, metric: Metric
) -> list[Markup]:
    """Losses and a score against a knob of AdaFedSelectKD, over the runs that set it.

    Args:
        usual: the run with the value that all other experiments use.
        metric: the score of predictions.
    """
    known = [run for run in runs if run in results.metrics and not math.isnan(knob_of(results, run, knob))]
    points = sorted((_point(results, run, knob, metric) for run in known), key=lambda point: point.value)
    if len(points) < 2:
        return []
    best = min(points, key=lambda point: point.validation.value)
    chosen = knob_of(results, usual, knob) if usual in results.rows else math.nan
    about = {"knob": name, "best": best.label, "marked": not math.isnan(chosen), "runs": known}
    return [canvas.place(sweep.draw(points, name, chosen, metric.title), f"sweep_{knob}", "sweep", **about)]


def _point(results: Results, run: str, knob: str, metric: Metric) -> sweep.Point:
    value, own = knob_of(results, run, knob), results.metrics[run][MEAN].metrics
    loss = best_validation_loss(results.histories[run])
    return sweep.Point(value, f"{value:.3g}", Interval(loss, loss, loss, 0.0), own["loss"], own.get(metric.name))


def tuned(results: Results, trials: Rows, runs: Sequence[str]) -> list[Markup]:
    """The chosen trial of each tuned knob of some runs, and whether it lies at the end of its grid.

    Args:
        trials: rows of tuning.csv, of one scale.
    """
    tried: dict[str, list[Mapping[str, str]]] = {}
    for row in trials:
        tried.setdefault(row["chooses"], []).append(row)
    keys = [(run, key) for run in runs for key in tried if key.rpartition(".")[0] == f"runs.{run}"]
    texts = [_chosen(run, tried[key], results.rows.get(run, ())) for run, key in keys]
    return [piece("chosen", trials="; ".join(texts))] if texts else []


def _chosen(run: str, trials: Rows, rows: Sequence[RunRow]) -> str:
    best = next(row for row in trials if row["chosen"] == "1")
    values, knob = [float(row["value"]) for row in trials], best["chooses"].rpartition(".")[2]
    edge = ", the end of what was tried" if float(best["value"]) in (min(values), max(values)) else ""
    training = rows[0].training if rows else None
    known = {} if training is None else training.model_dump() | training.hyperparameters
    other = "" if training is None or _same(best["value"], str(known.get(knob))) else " (the run has another)"
    return f"{run} {knob}={best['value']} of {len(trials)} trials{edge}{other}"


def _same(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other
