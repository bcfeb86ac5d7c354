"""Scores of examples -> the figures of a table: averaged over seeds an example, then over examples, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.evaluation.intervals import Clusters, Interval, bootstrap
from pipeline.evaluation.significance import DETECTABLE, holm, sign_flip

METRICS = (
    "rouge1",
    "rouge2",
    "rougeL",
    "rougeLsum",
    "average",
    "loss",
    "similarity",
    "length",
    "repetition",
)
MEAN = "mean"

TESTED = ("average", "loss")
HOLM_FAMILY = ("AdaFedAvg", "AdaFedKD", "AdaFedAvg-local", "AdaSingle")
"""The comparisons named in advance: Holm's adjustment runs over these, other runs are compared unadjusted."""


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


@dataclass(frozen=True)
class Scored:
    """One test example under one run: where it belongs, and its scores; the loss as a sum over `tokens`."""

    id: str
    client: str
    meeting: str
    tokens: int
    values: dict[str, float]


def over_seeds(files: Sequence[Sequence[Mapping[str, Any]]]) -> list[Scored]:
    """One run's example rows at each seed -> one row an example, every score the mean over seeds.

    A run that wrote no summaries has but its loss. Where the test sets are drawn anew for each seed, an example counts
    for each client that held it, over the seeds in which it did.
    """
    merged = []
    held: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for file in files:
        for row in file:
            held.setdefault((row["client"], row["id"]), []).append(row)
    for (client, identity), rows in held.items():
        first = rows[0]
        values = {m: sum(row[m] for row in rows) / len(rows) for m in METRICS if m in first}
        values["loss"] = sum(row["loss_sum"] for row in rows) / len(rows)
        merged.append(Scored(identity, client, first["meeting"], first["tokens"], values))
    return merged


def clusters_of(rows: Sequence[Scored], metric: str) -> dict[str, Clusters]:
    """Client -> meetings; a mean over examples, for the loss over tokens."""
    clients = list(dict.fromkeys(row.client for row in rows))
    result = {}
    for client in clients:
        own = [row for row in rows if row.client == client]
        denominators = [float(row.tokens) if metric == "loss" else 1.0 for row in own]
        result[client] = Clusters.of([r.meeting for r in own], [r.values[metric] for r in own], denominators)
    return result


def differences(ours: Sequence[Scored], theirs: Sequence[Scored]) -> list[Scored]:
    """Ours minus theirs, an example at a time, over the examples and the scores that both have."""
    other = {(row.client, row.id): row for row in theirs}
    pairs = ((row, other.get((row.client, row.id))) for row in ours)
    return [
        Scored(r.id, r.client, r.meeting, r.tokens, {m: v - o.values[m] for m, v in r.values.items() if m in o.values})
        for r, o in pairs
        if o is not None
    ]


def intervals_of(rows: Sequence[Scored], samples: int) -> dict[str, dict[str, float | int]]:
    """Client -> metric, `<metric>_low`, `<metric>_high`, `examples`; and `mean` over clients."""
    clients = list(dict.fromkeys(row.client for row in rows))
    table: dict[str, dict[str, float | int]] = {client: {} for client in [*clients, MEAN]}
    for metric in (metric for metric in METRICS if metric in rows[0].values):
        clusters = clusters_of(rows, metric)
        for client in clients:
            _put(table[client], metric, bootstrap({client: clusters[client]}, samples))
        _put(table[MEAN], metric, bootstrap(clusters, samples))
    for client in clients:
        table[client]["examples"] = sum(row.client == client for row in rows)
    table[MEAN]["examples"] = len(rows)
    return table


def _put(row: dict[str, float | int], metric: str, interval: Interval) -> None:
    row[metric] = round(interval.value, 4)
    row[f"{metric}_low"] = round(interval.low, 4)
    row[f"{metric}_high"] = round(interval.high, 4)


def compare(
    scored: Mapping[str, Sequence[Scored]],
    ours: str,
    family: Sequence[str],
    others: Sequence[str],
    metric: str,
    *,
    bootstrap_samples: int,
    permutation_samples: int,
) -> list[dict[str, Any]]:
    """One run against others on one metric: over all clients (tested), then each client (descriptive).

    `family` is what Holm's adjustment runs over; `others` are compared too, unadjusted.
    """
    rows: list[dict[str, Any]] = []
    for theirs in [*family, *others]:
        clusters = clusters_of(differences(scored[ours], scored[theirs]), metric)
        groups = {MEAN: clusters} | {client: {client: own} for client, own in clusters.items()}
        for client, group in groups.items():
            interval = bootstrap(group, bootstrap_samples)
            rows.append(
                {
                    "metric": metric,
                    "run": ours,
                    "against": theirs,
                    "client": client,
                    "difference": round(interval.value, 4),
                    "low": round(interval.low, 4),
                    "high": round(interval.high, 4),
                    "p": round(sign_flip(group, permutation_samples), 5),
                    "p_holm": None,
                    "smallest_detectable": round(DETECTABLE * interval.standard_error, 4),
                }
            )
    tested = [row for row in rows if row["client"] == MEAN and row["against"] in family]
    for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = round(adjusted, 5)
    return rows


def significance(
    scored: Mapping[str, Sequence[Scored]],
    ours: str,
    kinds: Mapping[str, str],
    *,
    bootstrap_samples: int,
    permutation_samples: int,
) -> list[dict[str, Any]]:
    """One run against all others, on every tested metric; `kinds` says which run plays which part of the family."""
    family = [run for run in scored if run != ours and kinds[run] in HOLM_FAMILY]
    others = [run for run in scored if run != ours and run not in family]
    return [
        row
        for metric in TESTED
        for row in compare(
            scored,
            ours,
            family,
            others,
            metric,
            bootstrap_samples=bootstrap_samples,
            permutation_samples=permutation_samples,
        )
    ]
