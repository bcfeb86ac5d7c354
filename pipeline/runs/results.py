"""Reads the scores and histories of planned runs and computes figures with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from pipeline.evaluation.comparisons import AtLength
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.scores import MEAN, Figures, Scored, at_length, contrast, figures_of, over_seeds
from pipeline.federated.history import Round, ended_by_cap
from pipeline.federated.objectives.threshold import Threshold
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.runs.result_files import read_results_of, rounds_of
from pipeline.workspace.progress import progress

Metrics = dict[str, dict[str, Figures]]
"""run -> client -> figures."""


@dataclass(frozen=True)
class Results:
    """Results by run: its rows (one a seed), its examples' scores, its figures over seeds and by seed, its history."""

    rows: dict[str, list[RunRow]]
    scored: dict[str, list[Scored]]
    scored_by_seed: dict[int, dict[str, list[Scored]]]
    metrics: Metrics
    by_seed: dict[int, Metrics]
    histories: dict[str, list[Round]]

    def capped(self, run: str) -> bool:
        """Whether the cap on rounds ended a run's training."""
        row = self.rows[run][0]
        return row.training is not None and ended_by_cap(self.histories[run], row.patience)

    def contrast(self, terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, Clusters] | None:
        """Compute a contrast's values by group; see `comparisons.Contrast`."""
        return contrast(self.scored if seed is None else self.scored_by_seed.get(seed, {}), terms, metric)

    def at_length(self, terms: Mapping[str, float], metric: str) -> dict[str, AtLength] | None:
        """Compute a contrast at equal length; see `comparisons.Lengths`."""
        return at_length(self.scored, terms, metric)


def read_results(rows: Sequence[RunRow], samples: int, label: str) -> Results:
    """Read the results behind tables and figures, with intervals from `samples` random sign flips of meetings.

    Raises:
        QuorumError: no run has a result.
    """
    files = read_results_of(rows)
    known = [row for row in rows if row.id in files and files[row.id]["scores"]["examples"]]  # others are left out
    scores = {run: result["scores"] for run, result in files.items()}
    return results_of(known, scores, {row.id: rounds_of(files[row.id], row.seed) for row in known}, samples, label)


def results_of(
    rows: Sequence[RunRow],
    files: Mapping[str, Any],
    rounds: Mapping[str, Sequence[Round]],
    samples: int,
    label: str,
) -> Results:
    """Compute figures from results that were read; see `scores_of` for the arguments."""
    found = scores_of(rows, files, rounds)
    metrics: Metrics = {}
    with progress(f"{label}: intervals", len(found.rows)) as advance:
        for name, own in found.rows.items():
            metrics[name] = _with_other_losses(figures_of(found.scored[name], samples), [files[row.id] for row in own])
            advance(1)
    alone = found.scored_by_seed
    by_seed = dict.fromkeys(alone, metrics) if len(alone) == 1 else _by_seed(found.rows, files, alone, samples)
    return replace(found, metrics=metrics, by_seed=by_seed)


def scores_of(rows: Sequence[RunRow], files: Mapping[str, Any], rounds: Mapping[str, Sequence[Round]]) -> Results:
    """Collect scores and histories without figures, whose intervals take long.

    Args:
        files: run id -> its scores, of every row.
        rounds: run id -> its history.
    """
    by_name: dict[str, list[RunRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    scored = {name: over_seeds([files[r.id]["examples"] for r in own]) for name, own in by_name.items()}
    histories = {name: [one for row in own for one in rounds[row.id]] for name, own in by_name.items()}
    return Results(by_name, scored, _alone(by_name, files), {}, {}, histories)


def _alone(by_name: Mapping[str, Sequence[RunRow]], files: Mapping[str, Any]) -> dict[int, dict[str, list[Scored]]]:
    """Seed -> run -> its examples' scores at that seed."""
    found: dict[int, dict[str, list[Scored]]] = {}
    for name, rows in by_name.items():
        for row in rows:
            found.setdefault(row.seed, {})[name] = over_seeds([files[row.id]["examples"]])
    return dict(sorted(found.items()))


def _by_seed(
    by_name: Mapping[str, Sequence[RunRow]],
    files: Mapping[str, Any],
    alone: Mapping[int, Mapping[str, Sequence[Scored]]],
    samples: int,
) -> dict[int, Metrics]:
    """The figures of each seed alone."""
    ids = {(row.name, row.seed): row.id for rows in by_name.values() for row in rows}
    return {
        seed: {
            name: _with_other_losses(figures_of(rows, samples), [files[ids[name, seed]]]) for name, rows in own.items()
        }
        for seed, own in alone.items()
    }


def _with_other_losses(figures: Mapping[str, Figures], seeds: Sequence[Mapping[str, Any]]) -> dict[str, Figures]:
    """Test loss of the last round's model, and of the server's or the client's own where the row is about the other.

    A seed counts by the client's test tokens at it, as it does in the row's own loss.

    Args:
        seeds: of each seed its examples and its clients' losses.
    """
    filled = {}
    for client, own in figures.items():
        known = [one["clients"].get(client, {}) for one in seeds]
        tokens = [sum(row.get("tokens", 0) for row in one["examples"] if row["client"] == client) for one in seeds]
        losses = {
            other: fmean((one[f"{other}_loss"] for one in known), weights=tokens)
            for other in ("last", "local", "server")
            if all(f"{other}_loss" in one for one in known)
        }
        filled[client] = replace(own, other_losses=losses)
    return filled


def first_runs(order: ReportOrder, results: Results) -> dict[str, str]:
    """Return setting -> id of its first run, preferring runs with results."""
    with_results = {row.id for rows in results.rows.values() for row in rows}
    first: dict[str, str] = {}
    for row in sorted(order.runs, key=lambda row: row.id not in with_results):
        first.setdefault(row.setting, row.id)
    return first


def common_clients(metrics: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return (the clients over which means of several runs are taken, all clients of any run).

    Means are over the clients that all runs have, or over each run's own clients if the runs share none.
    """
    all_clients = list(dict.fromkeys(client for own in metrics.values() for client in own if client != MEAN))
    common = [client for client in all_clients if all(client in own for own in metrics.values())]
    return common or all_clients, all_clients


def side_by_side(results: Results, names: Sequence[str], samples: int) -> Metrics:
    """Return the figures of compared runs, with their means over the clients that all of them have.

    SAMSum's dialogues are easier than meetings: a mean over four clients cannot be compared with one over three.
    """
    known = {name: results.metrics[name] for name in names if name in results.metrics}
    common, all_clients = common_clients(known)
    if common == all_clients:
        return known
    found: Metrics = {}
    for name in known:
        own = [row for row in results.scored[name] if row.client in common]
        found[name] = results.metrics[name] | {MEAN: figures_of(own, samples)[MEAN]}
    return found


def knob_of(results: Results, run: str, knob: str) -> float:
    """Return a run's value of a hyperparameter; NaN, if it has none.

    A threshold that is a quantile is returned as its mean in nats over all rounds.
    """
    training = results.rows[run][0].training
    value = training.hyperparameters.get(knob, math.nan) if training is not None else math.nan
    if knob != "tau" or (isinstance(value, float) and math.isnan(value)):
        return float(value)
    threshold = Threshold.parse(value)
    if threshold.quantile is None:
        return threshold.nats
    return fmean(one.figures["tau"] for one in results.histories[run] if "tau" in one.figures)
