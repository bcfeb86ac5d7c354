"""Metrics files: a small one for people and `dvc metrics`, and all figures for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.evaluation.scores import MEAN
from pipeline.runs.results import Metrics, Results
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.record import Json

POOLED = "test"
"""All test examples, without regard to clients."""


def write_metrics(results: Results, shown: Sequence[str]) -> None:
    """Write run -> client -> figures, over all seeds and of each; and the means of the metrics `shown`, for people."""
    means = {run: own[MEAN].metrics for run, own in results.metrics.items()}
    small = {run: {name: round(own[name].value, 3) for name in shown if name in own} for run, own in means.items()}
    _write(small, _plain(results.metrics), {seed: _plain(own.metrics) for seed, own in results.by_seed.items()})


def write_pooled_metrics(scores: Mapping[str, Mapping[int, Mapping[str, float]]]) -> None:
    """Write the metrics of runs over all test examples: run -> seed -> metric -> its value."""
    means, by_seed = {}, dict[int, Json]()
    for run, own in scores.items():
        means[run] = {name: round(fmean(one[name] for one in own.values()), 4) for name in next(iter(own.values()))}
        for seed, values in own.items():
            by_seed.setdefault(seed, {})[run] = {POOLED: values}
    _write(means, {run: {POOLED: own} for run, own in means.items()}, by_seed)


def _plain(metrics: Metrics) -> Json:
    return {
        run: {client: figures.to_json() | {"examples": figures.examples} for client, figures in own.items()}
        for run, own in metrics.items()
    }


def _write(small: Json, every: Json, by_seed: Mapping[int, Json]) -> None:
    write_json(layout.METRICS, small)
    write_json(layout.all_metrics(), every)
    for seed, own in by_seed.items():
        write_json(layout.seed_metrics(seed), own)
