"""Metrics files: a small one for people and `dvc metrics`, and all figures of a group of runs for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.evaluation.scores import MEAN
from pipeline.runs.results import Metrics
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.record import Json

POOLED = "test"
"""All test examples, without regard to clients."""


def small_metrics(metrics: Metrics, shown: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return run -> its means over clients, of few enough metrics for a terminal's columns."""
    return {
        run: {name: round(own[MEAN].metrics[name].value, 3) for name in shown if name in own[MEAN].metrics}
        for run, own in metrics.items()
    }


def write_metrics(metrics: Metrics, by_seed: Mapping[int, Metrics]) -> None:
    """Write reports/metrics: figures over all seeds, and of each seed."""
    write_json(layout.all_metrics(), plain(metrics))
    for seed, own in by_seed.items():
        write_json(layout.seed_metrics(seed), plain({run: own[run] for run in metrics if run in own}))


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


def plain(metrics: Metrics) -> Json:
    """Convert figures to JSON values."""
    return {
        run: {client: figures.to_json() | {"examples": figures.examples} for client, figures in own.items()}
        for run, own in metrics.items()
    }
