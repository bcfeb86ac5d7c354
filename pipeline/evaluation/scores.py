"""Scores of examples -> the figures of a table: averaged over seeds an example, then over examples, with intervals."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from pipeline.evaluation.equal_length import AtLength
from pipeline.evaluation.intervals import Array, Clusters, Interval, aligned, interval_of
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace.record import Json

MEAN = "mean"
LENGTH = "length"
LOG_LENGTH = "log_length"
MEETINGS = 30  # of a client alone, fewer give a point without an interval
NO_SCORES = ("id", "client", "group", "label", "seen", "items", "loss_sum", "text")
"""The fields of an example's row of scores that are no metrics."""


@dataclass(frozen=True)
class Scored:
    """One test example under one run: where it belongs, and its scores; the loss as a sum over `tokens`."""

    id: str
    client: str
    meeting: str
    tokens: int
    values: dict[str, float]
    label: str = ""


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
    found = []
    for row in rows:
        values = {name: float(value) for name, value in row.items() if name not in NO_SCORES}
        values |= {LOSS.name: float(row["loss_sum"])} if "loss_sum" in row else {}
        group, label = row.get("group", ""), row.get("label", "")
        found.append(Scored(row["id"], row["client"], group, row.get("items", 0), values, label))
    return found


def over_seeds(seeds: Iterable[Sequence[Scored]], needed: Collection[str] | None = None) -> list[Scored]:
    """One run's rows at each seed -> one row an example, every score the mean over seeds.

    Where each seed draws other test sets, an example counts for each client that had it, over the seeds in which it
    did. `needed`: the scores that are averaged; None: all.
    """
    by_example: dict[tuple[str, str], list[Scored]] = {}
    for row in chain.from_iterable(seeds):
        by_example.setdefault((row.client, row.id), []).append(row)

    def mean(rows: Sequence[Scored]) -> dict[str, float]:
        names = [name for name in rows[0].values if needed is None or name in needed]
        return {name: sum(row.values[name] for row in rows) / len(rows) for name in names}

    return [replace(rows[0], values=mean(rows)) for rows in by_example.values()]


def clusters_of(rows: Sequence[Scored], metric: str) -> dict[str, Clusters]:
    """Client -> meetings; a mean over examples, for the loss over tokens."""
    per = LOSS.per if metric == LOSS.name else None
    return {
        client: Clusters.of([row.meeting for row in own], figures(own, metric), figures(own, per))
        for client, own in by_client(rows).items()
    }


def figures(rows: Sequence[Scored], name: str | None) -> Array:
    """A figure of each example, or its number of tokens (`items`); ones for None."""
    found = (1.0 if name is None else row.tokens if name == LOSS.per else row.values[name] for row in rows)
    return np.array(list(found), dtype=float)


def by_client(rows: Sequence[Scored]) -> dict[str, list[Scored]]:
    """Client -> its examples, in order."""
    found: dict[str, list[Scored]] = {}
    for row in rows:
        found.setdefault(row.client, []).append(row)
    return found


Runs = Mapping[str, Sequence[Scored]]  # run -> its examples' scores


@dataclass(frozen=True)
class ScoresBySeed:
    """Scores of several runs, to compare them by: seed -> its runs; and name -> metric."""

    runs: Mapping[int, Runs]
    metrics: Mapping[str, Metric]

    def contrast(self, terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`: Σ coefficient · metric by meeting, over the examples that all runs have."""
        return clusters_of(self._combined(terms, metric, seed, log_length=False), metric) or None

    def at_length(self, terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, AtLength] | None:
        """See `comparisons.Lengths`. None for the loss, and where a run wrote no texts; no words count as one word."""
        if metric == LOSS.name:
            return None
        rows = self._combined(terms, metric, seed, log_length=True)
        return {
            client: AtLength(figures(own, metric), figures(own, LOG_LENGTH), [row.meeting for row in own])
            for client, own in by_client(rows).items()
        } or None

    def _combined(self, terms: Mapping[str, float], metric: str, seed: int | None, *, log_length: bool) -> list[Scored]:
        """Σ coefficient · figure of each example that all runs have; a figure that should be less counts negatively.

        Figures are means over the seeds at which all runs have results, or one seed's.
        """
        seeds = [own for at, own in self.runs.items() if seed in (None, at) and set(terms) <= set(own)]
        sign, needed = self.metrics[metric].sign, {metric, LENGTH} if log_length else {metric}
        signed: dict[str, Callable[[Scored], float]] = {metric: lambda row: sign * row.values[metric]}
        if log_length:
            signed[LOG_LENGTH] = lambda row: math.log(max(row.values[LENGTH], 1.0))
        known = []
        for run, weight in terms.items():
            rows = over_seeds((own[run] for own in seeds), needed)
            known.append((weight, {(r.client, r.id): r for r in rows if needed <= r.values.keys()}))
        return [
            replace(first, values={name: sum(w * of(own[key]) for w, own in known) for name, of in signed.items()})
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
