"""Scores of examples -> the figures of a table: averaged over seeds an example, then over examples, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.evaluation.comparisons import AtLength
from pipeline.evaluation.intervals import Clusters, Interval, aligned, interval_of

MEAN = "mean"
LOSS = "loss"
LENGTH = "length"

MEETINGS = 30
"""Of a client alone, fewer give a point without an interval."""
NO_SCORES = ("id", "client", "meeting", "tokens", "loss_sum")
"""The fields of an example's row of scores that are no metrics."""


@dataclass(frozen=True)
class Scored:
    """One test example under one run: where it belongs, and its scores; the loss as a sum over `tokens`."""

    id: str
    client: str
    meeting: str
    tokens: int
    values: dict[str, float]


@dataclass(frozen=True)
class Figures:
    """One client's figures, or their mean over clients: of how many examples, each metric with its interval.

    `other_losses`: mean test loss of models that the row is not about: the last round's (`last`), and the server's or
    the client's own, where the row is about the other.
    """

    examples: int
    metrics: Mapping[str, Interval]
    other_losses: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """To four digits, as metrics files have it."""
        losses = {f"{name}_loss": round(value, 4) for name, value in self.other_losses.items()}
        return {name: interval.rounded(4) for name, interval in self.metrics.items()} | losses


def over_seeds(files: Sequence[Sequence[Mapping[str, Any]]]) -> list[Scored]:
    """One run's example rows at each seed -> one row an example, every score the mean over seeds.

    A run that wrote no predictions has its loss alone, and turns of the source (lead, random) have no loss. Where each
    seed draws other test sets, an example counts for each client that had it, over the seeds in which it did.
    """
    merged = []
    by_example: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for file in files:
        for row in file:
            by_example.setdefault((row["client"], row["id"]), []).append(row)
    for (client, identity), rows in by_example.items():
        first = rows[0]
        values = {m: sum(row[m] for row in rows) / len(rows) for m in first if m not in NO_SCORES}
        if "loss_sum" in first:
            values[LOSS] = sum(row["loss_sum"] for row in rows) / len(rows)
        merged.append(Scored(identity, client, first["meeting"], first.get("tokens", 0), values))
    return merged


def clusters_of(rows: Sequence[Scored], metric: str) -> dict[str, Clusters]:
    """Client -> meetings; a mean over examples, for the loss over tokens."""
    result = {}
    for client, own in by_client(rows).items():
        denominators = [float(row.tokens) if metric == LOSS else 1.0 for row in own]
        result[client] = Clusters.of([r.meeting for r in own], [r.values[metric] for r in own], denominators)
    return result


def by_client(rows: Sequence[Scored]) -> dict[str, list[Scored]]:
    """Client -> its examples, in order."""
    found: dict[str, list[Scored]] = {}
    for row in rows:
        found.setdefault(row.client, []).append(row)
    return found


Runs = Mapping[str, Sequence[Scored]]
"""Run -> its examples' scores."""


def contrast(runs: Runs, terms: Mapping[str, float], metric: str) -> dict[str, Clusters] | None:
    """Client -> Σ coefficient · metric by meeting, over the examples that all runs have; a loss has the other sign.

    None where a run or its metric is missing.
    """
    rows = _combined(runs, terms, (metric,))
    if not rows:
        return None
    sign = -1.0 if metric == LOSS else 1.0
    return clusters_of(
        [Scored(r.id, r.client, r.meeting, r.tokens, {metric: sign * r.values[metric]}) for r in rows], metric
    )


def at_length(runs: Runs, terms: Mapping[str, float], metric: str) -> dict[str, AtLength] | None:
    """Client -> its examples' contrasts of a metric of texts, and of the log of their lengths in words.

    None for the loss, and where a run wrote no texts. A text of no words counts as one word.
    """
    if metric == LOSS:
        return None
    logs = {
        run: [
            Scored(r.id, r.client, r.meeting, r.tokens, r.values | {LENGTH: _log(r)})
            for r in runs.get(run, ())
            if LENGTH in r.values
        ]
        for run in terms
    }
    rows = _combined(logs, terms, (metric, LENGTH))
    return {
        client: AtLength(
            np.array([row.values[metric] for row in own]),
            np.array([row.values[LENGTH] for row in own]),
            [row.meeting for row in own],
        )
        for client, own in by_client(rows).items()
    } or None


def _log(row: Scored) -> float:
    return math.log(max(row.values[LENGTH], 1.0))


def _combined(runs: Runs, terms: Mapping[str, float], metrics: Sequence[str]) -> list[Scored]:
    """Σ coefficient · metric of each example that all runs have with these metrics."""
    known = [
        (weight, {(row.client, row.id): row for row in runs.get(run, ()) if all(m in row.values for m in metrics)})
        for run, weight in terms.items()
    ]
    shared = [key for key in known[0][1] if all(key in own for _, own in known)]
    return [
        Scored(
            first.id,
            first.client,
            first.meeting,
            first.tokens,
            {m: sum(w * own[key].values[m] for w, own in known) for m in metrics},
        )
        for key in shared
        for first in (known[0][1][key],)
    ]


def figures_of(rows: Sequence[Scored], samples: int) -> dict[str, Figures]:
    """Client -> its figures; and `mean` over clients. A client that was tested on few meetings gets points."""
    clusters = {metric: clusters_of(rows, metric) for metric in rows[0].values}
    table = {}
    for client, own in by_client(rows).items():
        few = len({row.meeting for row in own}) < MEETINGS
        found = {m: interval_of({client: clients[client]}, samples) for m, clients in clusters.items()}
        table[client] = Figures(len(own), {m: one.alone() if few else one for m, one in found.items()})
    table[MEAN] = Figures(len(rows), {m: interval_of(aligned(clients), samples) for m, clients in clusters.items()})
    return table
