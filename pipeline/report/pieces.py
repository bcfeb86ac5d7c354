"""Pieces of the page on the paper other than comparisons of runs: small tables, notes, and figures with captions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

import pandas as pd
from markupsafe import Markup

from pipeline.evaluation.agreement import kappa, shares
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import MEAN
from pipeline.federated.history import History, best_validation_loss, client_rounds
from pipeline.report.figures import bars, curves, intervals, matrices
from pipeline.report.figures.style import Look, colour
from pipeline.report.page import Drawing, Rows, piece, pivot, table
from pipeline.runs.results import Metrics, Results, knob_of
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

Analyses = Mapping[str, Json]
"""Tables of one kind of the stage `analyze`: name of a run or manifest -> its table."""
Piece = Drawing | Markup  # a figure or HTML

PAPER_SHARES = {"Academic": "86%", "Committee": "88%", "Product": "89%"}
SHARES = {
    "distilled": "words distilled",
    "all_subwords": "all subwords",
    "fraction": "subwords, mean",
    "paper": "the paper",
    "content_given_distilled": "nouns and verbs among the distilled",
}
"""Share in word_shares.csv, or the paper's -> its column."""


def rounds_of_clients(results: Results, runs: Sequence[str]) -> list[Markup]:
    """How many times a client trained in each run, the mean over seeds."""
    counts = {run: fmean(client_rounds(results.histories[run]).values()) for run in runs if results.histories.get(run)}
    text = ", ".join(f"{run} {count:g}" for run, count in counts.items())
    return [piece("client_rounds", counts=text)] if counts else []


def share_text(row: Mapping[str, str]) -> str:
    """A row of word_shares.csv as a percentage with its interval."""
    value, *ends = (100 * float(row[k]) for k in ("value", "low", "high") if row.get(k) not in (None, ""))
    return f"{value:.1f}%" + (" ({:.1f} … {:.1f})".format(*ends) if ends else "")


def words(shares: Rows, pos: Rows) -> list[Markup]:
    """A row a client: shares of its words, and those of the paper; and a row a part of speech.

    `shares`: rows of word_shares.csv. `pos`: rows of pos_kd.csv.
    """
    if not shares or not pos:
        return []
    known = {(row["client"], row["share"]): share_text(row) for row in shares}
    known |= {(client, "paper"): share for client, share in PAPER_SHARES.items()}
    clients = dict.fromkeys(row["client"] for row in shares)
    learned = {(client, SHARES[one]): known.get((client, one), "–") for client in clients for one in SHARES}
    lifts = {
        (row["pos"], row["client"]): f"{float(row['distilled_given_pos']):.0%} ({float(row['lift']):.2f})"
        for row in sorted(pos, key=lambda row: row["pos"])
    }
    return [pivot("Client", learned), pivot("distilled, of a part of speech (lift)", lifts), piece("lift")]


def parts_of_speech(pos: Rows, runs: Sequence[str]) -> list[Drawing]:
    """A figure for each client of what was distilled, by part of speech (Fig. 11)."""
    figures = {client: bars.draw_parts_of_speech(pos, client) for client in dict.fromkeys(row["client"] for row in pos)}
    return [Drawing(own, f"pos_{c}", "parts_of_speech", {"client": c, "runs": runs}) for c, own in figures.items()]


def untrained(metrics: Metrics, run: str, metric: Metric) -> list[Markup]:
    """Scores of the backbone before any training, a client."""
    own = {c: one.metrics[metric.name].value for c, one in metrics.get(run, {}).items() if c != MEAN}
    text = ", ".join(f"{client} {value:.2f}" for client, value in own.items())
    return [piece("untrained", metric=metric.title, scores=text)] if own else []


def crossed_losses(tables: Analyses) -> list[Piece]:
    """The loss of every client's adapter on every client's test set, as pictures."""
    if not tables:
        return []
    figure = matrices.draw_cells(tables, "trained by", "tested on", "Blues_r")
    return [Drawing(figure, "crossed", "crossed", {"runs": list(tables)})]


def divergences(tables: Analyses) -> list[Piece]:
    """Divergences of topics and words between clients, a picture a setting and seed."""
    placed: list[Piece] = []
    for name, found in tables.items():
        kinds = ("topics", "words")
        figure = matrices.draw_cells({kind: found[kind] for kind in kinds}, "", "", limits=(0.0, 1.0))
        sizes = ", ".join(f"{client} {count}" for client, count in found["examples"].items())
        about = {"setting": name, "sizes": sizes} | {kind: f"{found['by_chance'][kind]:.2f}" for kind in kinds}
        placed.append(Drawing(figure, f"divergence_{name}", "divergence", about))
    return placed


def ratings(rows: Rows, ours: str, samples: int) -> list[Piece]:
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
    return [Drawing(bars.draw_ratings(found, ours), "human", "human", about), table(head, cells)]


def teacher_deciles(results: Results, tables: Analyses) -> list[Piece]:
    """The teacher against the student by decile of the teacher's entropy, a figure for each run with results."""
    runs = {row.id.replace("/", "-"): name for name, rows in results.rows.items() for row in rows}
    taus = {run: knob_of(results, runs[run], "tau") for run in tables if run in runs}
    return [
        Drawing(curves.draw_deciles(tables[run], tau), f"deciles_{run}", "deciles", {"run": run, "tau": f"{tau:.3g}"})
        for run, tau in taus.items()
    ]


def teacher_and_student(results: Results, run: str) -> list[Piece]:
    """Validation loss of a run's students and teachers by round; nothing where no teacher was sent."""
    student = [one for one in results.histories.get(run, ()) if one.sent_validation_loss is not None]
    sent = [replace(one, validation_loss=one.sent_validation_loss) for one in student]
    if not sent:
        return []
    clients = list(dict.fromkeys(one.client for one in sent))
    both = {name: Look(name, colour(index)) for index, name in enumerate(("student", "teacher"), 1)}
    figure = curves.draw_validation({"student": student, "teacher": sent}, clients, both)
    return [Drawing(figure, f"teacher_{run}", "teacher_by_round", {"run": run})]


def knob_sweep(results: Results, runs: Sequence[str], knob: str, name: str, usual: str, metric: Metric) -> list[Piece]:
    """Losses and a score against a knob of AdaFedSelectKD, over the runs that set it.

    `usual`: the run with the value that all other experiments use. `metric`: the score of predictions.
    """
    known = {run: knob_of(results, run, knob) for run in runs if run in results.metrics}
    known = {run: value for run, value in sorted(known.items(), key=lambda one: one[1]) if not math.isnan(value)}
    if len(known) < 2:
        return []
    means = {run: results.metrics[run][MEAN].metrics for run in known}
    losses = {run: best_validation_loss(results.histories[run]) for run in known}
    panels = {
        "validation loss, nats a token": [(value, Interval(*[losses[run]] * 3)) for run, value in known.items()],
        "test loss, nats a token": [(value, means[run]["loss"]) for run, value in known.items()],
        f"{metric.title} on the test set": [
            (value, means[run][metric.name]) for run, value in known.items() if metric.name in means[run]
        ],
    }
    chosen = knob_of(results, usual, knob) if usual in results.rows else math.nan
    best = known[min(losses, key=losses.__getitem__)]
    about = {"knob": name, "best": f"{best:.3g}", "marked": not math.isnan(chosen)}
    about["runs"] = [run for run in runs if run in known]
    return [Drawing(intervals.draw_sweep(panels, name, chosen), f"sweep_{knob}", "sweep", about)]


def tuned(results: Results, trials: Rows, runs: Sequence[str]) -> list[Markup]:
    """The chosen trial of each tuned knob of some runs; `trials`: rows of tuning.csv, of one scale."""
    count = Counter(row["chooses"] for row in trials)
    chosen = {row["chooses"]: row for row in trials if row["chosen"] == "1"}
    texts = []
    for run, (key, best) in product(runs, chosen.items()):
        where, _, knob = key.rpartition(".")
        if where == f"runs.{run}":
            training = results.rows[run][0].training if run in results.rows else None
            known = {} if training is None else training.model_dump() | training.hyperparameters
            other = "" if training is None or float(best["value"]) == known.get(knob) else " (the run has another)"
            texts.append(f"{run} {knob}={best['value']} of {count[key]} trials{other}")
    return [piece("chosen", trials="; ".join(texts))] if texts else []


def bytes_sent(results: Results, runs: Sequence[str], looks: Mapping[str, Look], full_model: int) -> list[Piece]:
    """Validation loss against bytes, and the bytes that reach the best loss of the first run, AdaFedAvg."""
    shown = {run: results.histories[run] for run in runs if run in results.histories and run in results.metrics}
    if runs[0] not in shown:
        return []
    factor = full_model / max(one.bytes_up for one in shown[runs[0]])
    means = {run: results.metrics[run][MEAN].metrics for run in shown}
    sent = {run: sent_until_best(history) for run, history in shown.items()}
    rouge = {run: (sent[run], own["average"].value) for run, own in means.items() if "average" in own}
    figure = curves.draw_bytes(shown, looks, rouge, factor)
    goal = min(loss for _, loss in curves.path_of(shown[runs[0]]))
    head = (
        *(f"to AdaFedAvg’s best loss, {goal:.3f}", "MB, adapters", "MB, full model"),
        *("MB to its own best rounds", "test loss then", "average ROUGE then"),
    )
    rows = [
        (
            looks[run].label,
            *(_reached(curves.path_of(history, larger), goal) for larger in (1.0, factor)),
            f"{sent[run]:,.0f}",
            f"{means[run]['loss'].value:.3f}",
            f"{rouge[run][1]:.2f}" if run in rouge else "–",
        )
        for run, history in shown.items()
        if any(one.bytes_up for one in history)
    ]
    return [Drawing(figure, "communication", "communication", {"runs": list(shown)}), table(head, rows)]


def _reached(path: curves.Points, goal: float) -> str:
    return next((f"{sent:,.0f}" for sent, loss in path if loss <= goal), "not reached")


def sent_until_best(history: History) -> float:
    """MB of adapters until the last of the clients' best rounds, the mean over seeds."""
    sent = []
    for seed in dict.fromkeys(one.seed for one in history):
        own = [one for one in history if one.seed == seed]
        until = max(one.round for one in own if one.best)
        sent.append(sum(one.bytes_moved for one in own if one.round <= until))
    return fmean(sent) / curves.MEGABYTE
