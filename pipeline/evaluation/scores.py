"""Scores of examples -> the figures of a table: averaged over seeds an example, then over examples, with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from pipeline.evaluation.intervals import Clusters, Interval, aligned, interval_of, sign_flip, standard_error, visible
from pipeline.evaluation.significance import holm

MEAN = "mean"
LOSS = "loss"

MEETINGS = 30
"""Of a client alone, fewer give a point without an interval."""
NO_SCORES = ("id", "client", "meeting", "tokens", "loss_sum")
"""What an example's row of scores holds besides its metrics."""


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

    A run that wrote no predictions has but its loss. Where the test sets are drawn anew for each seed, an example
    counts for each client that held it, over the seeds in which it did.
    """
    merged = []
    held: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for file in files:
        for row in file:
            held.setdefault((row["client"], row["id"]), []).append(row)
    for (client, identity), rows in held.items():
        first = rows[0]
        values = {m: sum(row[m] for row in rows) / len(rows) for m in first if m not in NO_SCORES}
        values[LOSS] = sum(row["loss_sum"] for row in rows) / len(rows)
        merged.append(Scored(identity, client, first["meeting"], first["tokens"], values))
    return merged


def clusters_of(rows: Sequence[Scored], metric: str) -> dict[str, Clusters]:
    """Client -> meetings; a mean over examples, for the loss over tokens."""
    result = {}
    for client, own in by_client(rows).items():
        denominators = [float(row.tokens) if metric == LOSS else 1.0 for row in own]
        result[client] = Clusters.of([r.meeting for r in own], [r.values[metric] for r in own], denominators)
    return result


def by_client(rows: Sequence[Scored]) -> dict[str, list[Scored]]:
    found: dict[str, list[Scored]] = {}
    for row in rows:
        found.setdefault(row.client, []).append(row)
    return found


def differences(ours: Sequence[Scored], theirs: Sequence[Scored]) -> list[Scored]:
    """Ours minus theirs, an example at a time, over the examples and the scores that both have."""
    other = {(row.client, row.id): row for row in theirs}
    pairs = ((row, other.get((row.client, row.id))) for row in ours)
    return [
        Scored(r.id, r.client, r.meeting, r.tokens, {m: v - o.values[m] for m, v in r.values.items() if m in o.values})
        for r, o in pairs
        if o is not None
    ]


def gains(ours: Sequence[Scored], theirs: Sequence[Scored], metric: str) -> dict[str, Clusters] | None:
    """Client -> ours less theirs by meeting, turned so that more is better; None where scores are missing."""
    rows = differences(ours, theirs)
    if not rows or metric not in rows[0].values:
        return None
    turned = [replace(row, values={metric: -row.values[metric]}) for row in rows] if metric == LOSS else rows
    return clusters_of(turned, metric)


def figures_of(rows: Sequence[Scored], samples: int) -> dict[str, Figures]:
    """Client -> its figures; and `mean` over clients. A client that was tested on few meetings gets points."""
    clusters = {metric: clusters_of(rows, metric) for metric in rows[0].values}
    table = {}
    for client, own in by_client(rows).items():
        alone = {m: {client: clients[client]} for m, clients in clusters.items()}
        table[client] = Figures(len(own), {m: of_client(interval_of(one, samples), one) for m, one in alone.items()})
    table[MEAN] = Figures(len(rows), {m: interval_of(aligned(clients), samples) for m, clients in clusters.items()})
    return table


def of_client(interval: Interval, alone: Mapping[str, Clusters]) -> Interval:
    """One client's figure: a point, where it was tested on few meetings."""
    return interval.alone() if sum(len(own.names) for own in alone.values()) < MEETINGS else interval


@dataclass(frozen=True)
class Comparison:
    """One run less another on one metric, for a client or over all: tested over all, descriptive for one.

    `p_holm`: adjusted over the comparisons named in advance; None of others.
    """

    metric: str
    run: str
    against: str
    client: str
    difference: Interval
    p: float
    p_holm: float | None

    def to_row(self) -> dict[str, Any]:
        """A row of significance.csv."""
        found = self.difference.rounded(6)
        return {
            **{name: getattr(self, name) for name in ("metric", "run", "against", "client")},
            "difference": found["value"],
            "low": found.get("low"),
            "high": found.get("high"),
            "p": round(self.p, 5),
            "p_holm": None if self.p_holm is None else round(self.p_holm, 5),
            "visible": None if self.difference.is_point else round(self.difference.visible, 4),
        }


def compare(
    scored: Mapping[str, Sequence[Scored]],
    ours: str,
    family: Sequence[str],
    others: Sequence[str],
    metric: str,
    samples: int,
) -> list[Comparison]:
    """One run against others on one metric: over all clients, then each client.

    Args:
        family: what Holm's adjustment runs over; those of it that were not run count, as in `claims.judge`.
        others: compared too, unadjusted.
    """
    found: list[Comparison] = []
    for theirs in [run for run in (*family, *others) if run in scored]:
        clusters = clusters_of(differences(scored[ours], scored[theirs]), metric)
        groups = {MEAN: clusters} | {client: {client: own} for client, own in clusters.items()}
        for client, group in groups.items():
            interval, p = interval_of(group, samples), sign_flip(group, samples)
            shown = interval if client == MEAN else of_client(interval, group)
            found.append(Comparison(metric, ours, theirs, client, shown, p, None))
    tested = [place for place, one in enumerate(found) if one.client == MEAN and one.against in family]
    for place, adjusted in zip(tested, holm([found[place].p for place in tested], len(family)), strict=True):
        found[place] = replace(found[place], p_holm=adjusted)
    return found


def significance(
    scored: Mapping[str, Sequence[Scored]],
    ours: str,
    named: Collection[str],
    metrics: Sequence[str],
    samples: int,
) -> list[Comparison]:
    """One run against all others, on the metrics that are tested; `named`: those named in advance, Holm's family."""
    family = [*(run for run in scored if run in named), *(run for run in named if run not in scored)]
    others = [run for run in scored if run != ours and run not in named]
    return [one for metric in metrics for one in compare(scored, ours, family, others, metric, samples)]


def smallest_visible(scored: Mapping[str, Sequence[Scored]], metric: str) -> tuple[float, float] | None:
    """Between any two runs, the smallest mean difference that the design would have found: (of all pairs least, most).

    None where no two runs have the metric, or have too few meetings.
    """
    found = []
    for ours, theirs in combinations(scored.values(), 2):
        rows = differences(ours, theirs)
        if rows and metric in rows[0].values:
            found.append(visible(*standard_error(clusters_of(rows, metric))))
    known = [one for one in found if not math.isnan(one)]
    return (min(known), max(known)) if known else None
