"""FedNLP's tables as rows, for the page and for CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from pipeline.clients.batches import LEAST_STEPS, batch_sizes
from pipeline.clients.skews import SERVER
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.pooled import (
    BySeed,
    LabelCounts,
    Rows,
    divergences,
    of_own_texts,
    per_client,
    value_of,
    with_interval,
    worst_tenth,
)
from pipeline.plan.orders import RunRow
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace.record import Json

Curves = Mapping[int, Sequence[float]]
"""Seed -> development loss by round."""
FEW = 8
"""The most clients that a table names one by one."""
PaperRows = Sequence[Mapping[str, str]]
PAPERS = {"fedavg": "FedAvg", "fedprox": "FedProx", "fedopt": "FedOPT"}
"""Last part of a run's name -> the paper's name of its method."""
THEIRS = {
    "classify": "text classification",
    "tag": "sequence tagging",
    "answer": "question answering",
    "title": "seq2seq",
}
"""Task -> its name in the paper."""


@dataclass(frozen=True)
class RunOutcome:
    """A run's results: its test rows and its development losses at each seed, what it sent, and its size.

    `best`: seed -> the first metric at the best development round. `sent`: bytes of all rounds, both ways, mean over
    seeds. `parameters`: how many numbers train.
    """

    row: RunRow
    scored: BySeed
    best: Mapping[int, float]
    curves: Curves
    sent: float
    parameters: int


def ends_of(shown: Interval) -> Json:
    """The ends of a score's interval, at least 0; empty for too few groups of texts."""
    if shown.is_point:
        return {"low": "", "high": ""}
    return {"low": round(max(shown.low, 0.0), 2), "high": round(shown.high, 2)}


def method_row(
    run: RunOutcome, metrics: Sequence[Metric], label_counts: Mapping[int, LabelCounts], samples: int
) -> Json:
    """A run of Table 2: every metric, each seed's, the best round's, and over clients.

    `not_judged`: the number of clients that no test text can score, the mean over seeds.
    """
    first = metrics[0]
    seeds = [seed for seed in run.scored if label_counts.get(seed)]
    judged = {seed: _of_clients(run.scored[seed], label_counts[seed], first) for seed in seeds}
    missing = fmean(len(label_counts[seed]) - len(own) for seed, own in judged.items()) if seeds else 0.0
    own = [list(values.values()) for values in judged.values() if values]
    shown = with_interval(run.scored, first, samples)
    return {
        "run": run.row.name,
        "method": run.row.method,
        first.name: round(shown.value, 2),
        **ends_of(shown),
        **{one.name: round(with_interval(run.scored, one, samples).value, 2) for one in metrics[1:]},
        "by_seed": " / ".join(f"{value_of(rows, first):.1f}" for rows in run.scored.values()),
        "loss": round(fmean(value_of(rows, LOSS) for rows in run.scored.values()), 3),
        "at_best_round": round(fmean(run.best.values()), 2) if run.best else "",
        "clients_mean": round(fmean(map(fmean, own)), 2) if own else "",
        "worst_tenth": round(fmean(map(worst_tenth, own)), 2) if own else "",
        "not_judged": f"{round(missing, 2):g}" if missing else "",
    }


def _of_clients(rows: Rows, label_counts: LabelCounts, metric: Metric) -> dict[str, float]:
    """Client -> a metric over its own test texts; where the server has all texts, weighted by the client's labels."""
    if any(row.client != SERVER for row in rows):
        return of_own_texts(rows, metric)
    return per_client(rows, label_counts, metric)


def majority_row(rows: BySeed, metric: Metric, counts: Mapping[str, int]) -> Json | None:
    """The accuracy of always predicting the most frequent training label; None for tasks without labels."""
    if metric.name != "accuracy":
        return None
    label = min(counts, key=lambda one: (-counts[one], one))
    shares = [fmean(100.0 * (row.label == label) for row in own) for own in rows.values()]
    return {"run": f"always {label}", "method": "majority", metric.name: round(fmean(shares), 2)}


def with_paper(rows: Sequence[Json], paper: PaperRows, task: str) -> list[Json]:
    """Our rows with the numbers of Table 2, x 100; without them for a task that it lacks."""
    if not task:
        return list(rows)
    known = {
        row["method"]: 100 * float(row["value"])
        for row in paper
        if row["table"] == "2" and row["task"] == task and row["metric"].endswith("_fraction")
    }
    named = [(row, PAPERS.get(row["run"].partition("-")[2], "")) for row in rows]
    return [row | {"paper": round(known[name], 2) if name in known else ""} for row, name in named]


def data_row(name: str, about: Json, unlearned: int | None, task: str, paper: PaperRows) -> Json:
    """A row of Table 1: the counts of a data set, and the paper's counts for its task.

    Args:
        unlearned: the number of sampled training texts without an answer; None: none was sampled.
    """
    theirs = [row for row in paper if row["table"] == "1" and row["task"] == task]
    counts = {row["metric"]: int(float(row["value"])) for row in theirs}
    return {
        "data_set": name,
        **{count: about.get(count, 0) for count in ("train", "val", "test", "left_out")},
        "without_answer": "" if unlearned is None else unlearned,
        "labels": "" if about["labels"] is None else about["labels"],
        "owners": about["owners"],
        "source": about["source"]["source"],
        "paper_data": theirs[0]["dataset"] if theirs else "",
        **{f"paper_{split}": counts.get(f"{split}_examples", "") for split in ("train", "test")},
        "paper_labels": counts.get("labels", ""),
    }


def federation_row(name: str, label_counts: LabelCounts, batch_size: int | None = None) -> Json:
    """How skewed a federation is.

    `least`, `most`: texts of its smallest and its largest client. `short`: the number of clients whose round has too
    few optimizer steps, if there is a training.
    """
    sizes = np.array([sum(counts.values()) for counts in label_counts.values()], dtype=float)
    distances = divergences(label_counts)
    apart = distances[~np.eye(len(distances), dtype=bool)]
    return {
        "setting": name,
        "clients": len(label_counts),
        "texts": int(sizes.sum()),
        "least": int(sizes.min()),
        "most": int(sizes.max()),
        "short": "" if batch_size is None else sum(len(batch_sizes(int(n), batch_size)) < LEAST_STEPS for n in sizes),
        "cv": round(float(sizes.std() / sizes.mean()), 3),
        "divergence_bits": round(float(apart.mean()), 3) if len(apart) else 0.0,
    }


def cost_row(run: RunOutcome, metric: Metric, samples: int, paper: float | None) -> Json:
    """A row of Table 3 and Fig. 7: trainable numbers, MB sent, score."""
    shown = with_interval(run.scored, metric, samples)
    return {
        "run": run.row.name,
        "frozen": run.row.learner.view.frozen if run.row.learner else "",
        "parameters": run.parameters,
        "sent_mb": round(run.sent / 1e6, 1),
        metric.name: round(shown.value, 2),
        **ends_of(shown),
        "paper": "" if paper is None else round(paper, 2),
    }


def client_rows(run: RunOutcome, metric: Metric) -> Json:
    """Natural clients, each on its own texts: means over the seeds at which it was scored."""
    by_seed = [of_own_texts(rows, metric) for rows in run.scored.values()]
    clients = sorted({client for own in by_seed for client in own})
    values = {client: fmean(own[client] for own in by_seed if client in own) for client in clients}
    return {
        "run": run.row.name,
        **({client: round(value, 2) for client, value in values.items()} if len(clients) <= FEW else {}),
        "clients_mean": round(fmean(values.values()), 2) if values else "",
        "worst_tenth": round(worst_tenth(list(values.values())), 2) if values else "",
    }
