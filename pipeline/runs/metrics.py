"""Metrics files: a small one for people and `dvc metrics`, and all figures of a group of runs for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.evaluation.scores import MEAN
from pipeline.runs.results import Metrics
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


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


def plain(metrics: Metrics) -> dict[str, Any]:
    """Convert figures to JSON values."""
    return {
        run: {client: figures.to_json() | {"examples": figures.examples} for client, figures in own.items()}
        for run, own in metrics.items()
    }
