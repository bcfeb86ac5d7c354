"""Scores of texts -> figures with intervals: of one run, of a combination of runs, and of each client.

What one text got at several seeds is averaged. Texts of one group (a thread, a document, a paragraph) share a sign. A
metric that is a ratio of sums, as F1 of spans, is linearized: θ = Σa / Σb moves with a text by (a − θ b) / Σb.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.evaluation.divergence import jensen_shannon
from pipeline.evaluation.intervals import Array, Clusters, Interval, interval_of
from pipeline.evaluation.scores import Scored, by_client, figures
from pipeline.tasks.task import Metric

Rows = Sequence[Scored]
BySeed = Mapping[int, Rows]  # seed -> a run's rows, a test text each
LabelCounts = Mapping[str, Mapping[str, int]]
"""Client -> label -> how many training texts of the client have it."""
ALL = "all"


def parts(rows: Rows, metric: Metric) -> tuple[Array, Array]:
    """Numerators and denominators of some texts: a score and 1, or what it is counted in."""
    return figures(rows, metric.name), figures(rows, metric.per)


def value_of(rows: Rows, metric: Metric) -> float:
    """A metric over some texts; 0 where nothing is counted."""
    top, bottom = parts(rows, metric)
    return float(top.sum() / bottom.sum()) if bottom.sum() else 0.0


def linear(by_seed: BySeed, metric: Metric) -> dict[str, tuple[str, float]]:
    """Text -> (group, what it adds to the mean over texts), the mean over seeds: their mean is the metric.

    The texts of all clients are pooled. A text that some seeds lack counts with the seeds that have it.
    """
    sums: dict[str, tuple[str, float]] = {}
    texts = len({row.id for rows in by_seed.values() for row in rows})
    for rows in by_seed.values():
        top, bottom = parts(rows, metric)
        whole = bottom.sum()
        theta = top.sum() / whole if whole else 0.0
        own = theta + (top - theta * bottom) * len(rows) / (whole or 1.0)
        for row, value in zip(rows, own, strict=True):
            before = sums.get(row.id, (row.meeting, 0.0))
            sums[row.id] = row.meeting, before[1] + float(value) * (texts / len(rows)) / len(by_seed)
    return sums


def combined(terms: Sequence[tuple[float, BySeed]], metric: Metric) -> dict[str, Clusters]:
    """Σ coefficient · metric, by group, over the texts on which all runs were evaluated."""
    found = [(weight, linear(own, metric)) for weight, own in terms]
    ids = [identity for identity in found[0][1] if all(identity in own for _, own in found)]
    values = [sum(weight * own[identity][1] for weight, own in found) for identity in ids]
    return {ALL: Clusters.of([found[0][1][identity][0] for identity in ids], values, [1.0] * len(ids))}


def with_interval(by_seed: BySeed, metric: Metric, samples: int) -> Interval:
    """A run's metric over all its test texts, the mean over seeds, with its 95% interval."""
    return interval_of(combined([(1.0, by_seed)], metric), samples)


def per_client(rows: Rows, label_counts: LabelCounts, metric: Metric) -> dict[str, float]:
    """Client -> the metric over all test texts, weighted to the client's own mixture of labels.

    A text of label c weighs q_j(c) / p(c): q_j is the client's share of c in training, p the share among these texts.
    A client is left out if none of these texts has one of its labels, or if those texts contain nothing to find.
    Neither depends on predictions, so every run is scored for the same clients.
    """
    labels, place = np.unique([row.label for row in rows], return_inverse=True)
    columns = (*parts(rows, metric), figures(rows, metric.sought), figures(rows, None))
    top, bottom, there, count = (np.bincount(place, own, len(labels)) for own in columns)
    found = {}
    for client, counts in label_counts.items():
        weight = np.array([float(counts.get(label, 0)) for label in labels]) / count
        if weight @ there:
            below = float(weight @ bottom)
            found[client] = float(weight @ top) / below if below else 0.0
    return found


def of_own_texts(rows: Rows, metric: Metric) -> dict[str, float]:
    """Client -> the metric over its own test texts; a client whose texts contain nothing to find is left out."""
    own_texts = by_client(rows).items()
    return {client: value_of(own, metric) for client, own in own_texts if figures(own, metric.sought).sum()}


def worst_tenth(values: Sequence[float]) -> float:
    """The mean of the lowest tenth, at least one."""
    ordered = sorted(values)
    return float(np.mean(ordered[: max(1, len(ordered) // 10)]))


def roughness(curve: Sequence[float]) -> float:
    """The standard deviation of changes from one round to the next, over the last half."""
    changes = np.diff(np.asarray(curve[len(curve) // 2 :], dtype=float))
    return float(changes.std()) if len(changes) else 0.0


SHOWN = 300  # the most clients that are compared with each other


def divergences(label_counts: LabelCounts) -> Array:
    """Jensen-Shannon divergence of labels between clients, in bits: (clients, clients), rows by falling sum.

    With more than `SHOWN` clients, `SHOWN` of them, evenly spread, are compared.
    """
    names = [name for name, counts in label_counts.items() if counts]
    names = [names[i * len(names) // SHOWN] for i in range(SHOWN)] if len(names) > SHOWN else names
    labels = sorted({label for name in names for label in label_counts[name]})
    found = jensen_shannon(np.array([[float(label_counts[name].get(label, 0)) for label in labels] for name in names]))
    order = np.argsort(-found.sum(1), kind="stable")
    return np.asarray(np.clip(np.nan_to_num(found)[order][:, order], 0.0, 1.0))
