"""Scores of examples -> the figures of a table: averaged over seeds an example, then over examples, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from pipeline.evaluation.comparisons import AtLength
from pipeline.evaluation.intervals import Clusters, Interval, aligned, interval_of
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

MEAN = "mean"
LOSS = "loss"
LENGTH = "length"
LOG_LENGTH = "log_length"

MEETINGS = 30
"""Of a client alone, fewer give a point without an interval."""
NO_SCORES = ("id", "client", "group", "label", "items", "loss_sum", "text")
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

    def to_json(self) -> Json:
        """To four digits, as metrics files have it."""
        losses = {f"{name}_loss": round(value, 4) for name, value in self.other_losses.items()}
        return {name: interval.rounded(4) for name, interval in self.metrics.items()} | losses


def read_rows(rows: Sequence[Json]) -> list[Scored]:
    """A run's example rows at one seed, as results have them.

    A run that wrote no predictions has its loss alone, and turns of the source (lead, random) have no loss.
    """

    def values(row: Json) -> dict[str, float]:
        found = {name: float(value) for name, value in row.items() if name not in NO_SCORES}
        return found | ({LOSS: float(row["loss_sum"])} if "loss_sum" in row else {})

    return [Scored(row["id"], row["client"], row["group"], row.get("items", 0), values(row)) for row in rows]


def over_seeds(seeds: Iterable[Sequence[Scored]]) -> list[Scored]:
    """One run's rows at each seed -> one row an example, every score the mean over seeds.

    Where each seed draws other test sets, an example counts for each client that had it, over the seeds in which it
    did.
    """
    by_example: dict[tuple[str, str], list[Scored]] = {}
    for row in chain.from_iterable(seeds):
        by_example.setdefault((row.client, row.id), []).append(row)
    return [
        replace(rows[0], values={m: sum(row.values[m] for row in rows) / len(rows) for m in rows[0].values})
        for rows in by_example.values()
    ]


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


@dataclass(frozen=True)
class ScoresBySeed:
    """Scores of several runs, to compare them by.

    Attributes:
        runs: seed -> its runs.
        metrics: name -> metric.
    """

    runs: Mapping[int, Runs]
    metrics: Mapping[str, Metric]

    def contrast(self, terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, Clusters] | None:
        """Compute a contrast's values by group; see `comparisons.Contrast`."""
        return contrast(self._shared(terms, seed), terms, self.metrics[metric])

    def at_length(self, terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, AtLength] | None:
        """Compute a contrast at equal length; see `comparisons.Lengths`."""
        return at_length(self._shared(terms, seed), terms, self.metrics[metric])

    def _shared(self, terms: Mapping[str, float], seed: int | None) -> Runs:
        """The means over the seeds at which all runs of a contrast have results, or one seed's scores."""
        seeds = [own for at, own in self.runs.items() if seed in (None, at) and set(terms) <= set(own)]
        return {run: over_seeds(own[run] for own in seeds) for run in terms}


def contrast(runs: Runs, terms: Mapping[str, float], metric: Metric) -> dict[str, Clusters] | None:
    """Client -> Σ coefficient · metric by meeting, over the examples that all runs have; positive where it is better.

    None where a run or its metric is missing.
    """
    rows = _combined(runs, terms, metric, ())
    return clusters_of(rows, metric.name) if rows else None


def at_length(runs: Runs, terms: Mapping[str, float], metric: Metric) -> dict[str, AtLength] | None:
    """Client -> its examples' contrasts of a metric of texts, and of the log of their lengths in words.

    None for the loss, and where a run wrote no texts. A text of no words counts as one word.
    """
    if metric.name == LOSS:
        return None
    logs = {
        run: [
            replace(row, values=row.values | {LOG_LENGTH: math.log(max(row.values[LENGTH], 1.0))})
            for row in runs.get(run, ())
            if LENGTH in row.values
        ]
        for run in terms
    }
    rows = _combined(logs, terms, metric, (LOG_LENGTH,))
    return {
        client: AtLength(
            np.array([row.values[metric.name] for row in own]),
            np.array([row.values[LOG_LENGTH] for row in own]),
            [row.meeting for row in own],
        )
        for client, own in by_client(rows).items()
    } or None


def _combined(runs: Runs, terms: Mapping[str, float], metric: Metric, more: Sequence[str]) -> list[Scored]:
    """Σ coefficient · figure of each example that all runs have with these figures; the metric has its sign."""
    signs = {metric.name: metric.sign} | dict.fromkeys(more, 1)
    known = [
        (weight, {(row.client, row.id): row for row in runs.get(run, ()) if set(signs) <= set(row.values)})
        for run, weight in terms.items()
    ]
    return [
        replace(first, values={m: sum(sign * w * own[key].values[m] for w, own in known) for m, sign in signs.items()})
        for key, first in known[0][1].items()
        if all(key in own for _, own in known)
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
