"""Metrics files: a small one for people and `dvc metrics`, all figures for programs, and the identities of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from pipeline.evaluation.scores import MEAN
from pipeline.plan.orders import RunRow
from pipeline.runs.results import Metrics
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.record import Json

POOLED = "test"
"""All test examples, without regard to clients."""


def write_metrics(metrics: Metrics, by_seed: Mapping[int, Metrics], shown: Sequence[str]) -> None:
    """Write run -> client -> figures, over all seeds and of each seed; and a few metrics' means, for a terminal.

    Args:
        shown: the metrics whose means are in the small file, if the run has them.
    """
    small = {
        run: {name: round(own[MEAN].metrics[name].value, 3) for name in shown if name in own[MEAN].metrics}
        for run, own in metrics.items()
    }
    write_json(layout.METRICS, small)
    write_json(layout.all_metrics(), _plain(metrics))
    for seed, own in by_seed.items():
        write_json(layout.seed_metrics(seed), _plain(own))


def _plain(metrics: Metrics) -> Json:
    return {
        run: {client: figures.to_json() | {"examples": figures.examples} for client, figures in own.items()}
        for run, own in metrics.items()
    }


def write_pooled_metrics(scores: Mapping[str, Mapping[int, Mapping[str, float]]]) -> None:
    """Write the metrics of runs over all test examples: run -> seed -> metric -> its value."""
    means = {
        run: {name: round(fmean(own[name] for own in by_seed.values()), 4) for name in next(iter(by_seed.values()))}
        for run, by_seed in scores.items()
    }
    write_json(layout.METRICS, means)
    write_json(layout.all_metrics(), {run: {POOLED: own} for run, own in means.items()})
    for seed in sorted({seed for by_seed in scores.values() for seed in by_seed}):
        write_json(layout.seed_metrics(seed), {r: {POOLED: own[seed]} for r, own in scores.items() if seed in own})


def identity_of(row: RunRow, training: str | None) -> str:
    """Hash what a run at one seed is, so that MLflow logs nothing twice: its place, its knobs, its training's key."""
    return sha256_json([layout.workspace().as_posix(), row.id, row.fingerprint, training])


def record_identities(rows: Iterable[RunRow], results: Mapping[str, Json]) -> None:
    """Write the identity of each run with a result next to the metrics."""
    known = {row.id: identity_of(row, results[row.id]["training"]) for row in rows if row.id in results}
    write_json(layout.identities(), known)


def recorded_identities() -> dict[str, str]:
    """Read run id -> identity; empty where no metrics have been written."""
    return read_json(layout.identities()) if layout.identities().is_file() else {}
