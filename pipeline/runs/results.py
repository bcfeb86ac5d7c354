"""Reads the scores and histories of planned runs and computes figures with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pipeline.evaluation.scores import MEAN, Figures, Scored, figures_of, over_seeds, read_rows
from pipeline.federated.history import Round, ended_by_cap
from pipeline.federated.objectives.threshold import Threshold
from pipeline.plan.orders import RunRow
from pipeline.runs.result_files import Result
from pipeline.workspace.progress import progress
from pipeline.workspace.record import Json

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


def results_of(
    rows: Sequence[RunRow],
    files: Mapping[str, Result],
    samples: int,
    label: str,
    by_seed: Mapping[int, Metrics] | None = None,
) -> Results:
    """Compute figures from results that were read; see `scores_of` for the arguments.

    Args:
        by_seed: the figures of each seed alone, where they are known.
    """
    found = scores_of(rows, files)
    metrics: Metrics = {}
    with progress(f"{label}: intervals", len(found.rows)) as advance:
        for name, own in found.rows.items():
            scores = [files[row.id]["scores"] for row in own]
            metrics[name] = _with_other_losses(figures_of(found.scored[name], samples), scores)
            advance(1)
    seeds = list(found.scored_by_seed)
    by_seed = by_seed or {
        seed: metrics
        if len(seeds) == 1
        else results_of([row for row in rows if row.seed == seed], files, samples, f"{label}: seed {seed}").metrics
        for seed in seeds
    }
    return replace(found, metrics=metrics, by_seed=dict(by_seed))


def scores_of(rows: Sequence[RunRow], files: Mapping[str, Result]) -> Results:
    """Collect scores and histories without figures, whose intervals take long.

    Args:
        files: run id -> its result; rows that have none, or none with examples, are left out.
    """
    rows = [row for row in rows if row.id in files and files[row.id]["scores"]["examples"]]
    by_name: dict[str, list[RunRow]] = {}
    alone: dict[int, dict[str, list[Scored]]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
        alone.setdefault(row.seed, {})[row.name] = read_rows(files[row.id]["scores"]["examples"])
    scored = {name: over_seeds(alone[row.seed][name] for row in own) for name, own in by_name.items()}
    histories = {
        name: [Round.of_row(one, row.seed) for row in own for one in files[row.id]["history"]]
        for name, own in by_name.items()
    }
    return Results(by_name, scored, dict(sorted(alone.items())), {}, {}, histories)


def _with_other_losses(figures: Mapping[str, Figures], seeds: Sequence[Json]) -> dict[str, Figures]:
    """Test loss of the last round's model, and of the server's or the client's own where the row is about the other.

    A seed counts by the client's test tokens at it, as it does in the row's own loss.

    Args:
        seeds: of each seed its examples and its clients' losses.
    """
    filled = {}
    for client, own in figures.items():
        known = [one["clients"].get(client, {}) for one in seeds]
        tokens = [sum(row.get("items", 0) for row in one["examples"] if row["client"] == client) for one in seeds]
        losses = {
            other: fmean((one[f"{other}_loss"] for one in known), weights=tokens)
            for other in ("last", "local", "server")
            if all(f"{other}_loss" in one for one in known)
        }
        filled[client] = replace(own, other_losses=losses)
    return filled


def common_clients(metrics: Mapping[str, Json]) -> tuple[list[str], list[str]]:
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
    value = math.nan if training is None else training.hyperparameters.get(knob, math.nan)
    if isinstance(value, str) and Threshold.parse(value).quantile is not None:
        return fmean(one.figures[knob] for one in results.histories[run] if knob in one.figures)
    return float(value)
