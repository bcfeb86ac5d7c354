"""From how many training examples on does pooling pay, and for whom: AdaCentralized less AdaSingle, by data size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pipeline.evaluation.intervals import Clusters, Interval, interval_of
from pipeline.evaluation.scores import MEAN, Scored, gains, of_client
from pipeline.plan.orders import RunRow
from pipeline.report.page import piece, signed
from pipeline.tasks.task import Metric

ALONE, POOLED = "AdaSingle", "AdaCentralized"
Held = Mapping[str, float]
"""Client -> training examples, mean over seeds."""


@dataclass(frozen=True)
class Size:
    """What a setting's clients hold, and metric -> client (MEAN among them) -> what pooling gains; more is better."""

    setting: str
    held: Held
    gains: Mapping[str, Mapping[str, Interval]]

    @property
    def examples(self) -> float:
        """Of all clients together."""
        return sum(self.held.values())


def sizes_of(
    rows: Mapping[str, Sequence[RunRow]],
    scored: Mapping[str, Sequence[Scored]],
    held: Mapping[str, Held],
    metrics: Sequence[Metric],
    samples: int,
) -> list[Size]:
    """A size a setting in which both runs were made, the smallest first.

    Args:
        held: setting -> what its clients hold.
    """
    runs: dict[str, dict[str, str]] = {}
    for name, own in rows.items():
        if own[0].method in (ALONE, POOLED):
            runs.setdefault(own[0].setting, {}).setdefault(own[0].method, name)
    found = []
    for setting, pair in runs.items():
        if len(pair) == 2:
            ours, theirs = scored[pair[POOLED]], scored[pair[ALONE]]
            gained = {metric.name: _with_intervals(gains(ours, theirs, metric.name), samples) for metric in metrics}
            found.append(Size(setting, held[setting], gained))
    return sorted(found, key=lambda size: size.examples)


def _with_intervals(clusters: Mapping[str, Clusters] | None, samples: int) -> dict[str, Interval]:
    assert clusters, "both runs wrote summaries of the same examples"
    alone = {client: {client: own} for client, own in clusters.items()}
    found = {client: of_client(interval_of(own, samples), own) for client, own in alone.items()}
    return found | {MEAN: interval_of(clusters, samples)}


def table(sizes: Sequence[Size], metrics: Sequence[Metric]) -> Markup:
    """A row a size and metric: what each client holds and gains, and the mean."""
    clients = list(sizes[0].held)
    rows = [
        [
            metric.title,
            ", ".join(f"{client} {count:.0f}" for client, count in size.held.items()),
            *(_cell(size.gains[metric.name][client], metric) for client in (*clients, MEAN)),
        ]
        for metric in metrics
        for size in sizes
    ]
    return piece("table", head=["gain of pooling in", "training examples", *clients, "mean"], rows=rows)


def _cell(gain: Interval, metric: Metric) -> str:
    span = gain.span(metric.digits, "+")
    return signed(gain.value, metric.digits) + (f" ({span})" if span else "")


def rows_of(sizes: Sequence[Size]) -> list[dict[str, Any]]:
    """Rows of sizes.csv: one a size, metric and client."""
    return [
        {"setting": size.setting, "metric": metric, "client": client}
        | {"examples": round(size.held.get(client, size.examples), 1)}
        | {"gain": round(one.value, 6), "low": _end(one, one.low), "high": _end(one, one.high)}
        for size in sizes
        for metric, gains in size.gains.items()
        for client, one in gains.items()
    ]


def _end(gain: Interval, end: float) -> float | None:
    return None if gain.is_point else round(end, 6)
