"""Reads the scores and histories of planned runs, computes figures with intervals, and writes them as metrics."""

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
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import progress
from pipeline.workspace.record import Json

Metrics = dict[str, dict[str, Figures]]  # run -> client -> figures
Files = Mapping[str, Result]  # run id -> its result
POOLED = "test"  # all test examples, without regard to clients


@dataclass(frozen=True)
class Results:
    """Results by run: its rows (one a seed), its examples' scores, its figures, its history; and those of each seed."""

    rows: dict[str, list[RunRow]]
    scored: dict[str, list[Scored]]
    scored_by_seed: dict[int, dict[str, list[Scored]]]
    metrics: Metrics
    by_seed: dict[int, Results]
    histories: dict[str, list[Round]]

    def capped(self, run: str) -> bool:
        """Whether the cap on rounds ended a run's training."""
        row = self.rows[run][0]
        return row.training is not None and ended_by_cap(self.histories[run], row.patience)


def results_of(rows: Sequence[RunRow], files: Files, samples: int, label: str) -> Results:
    """Compute figures from results that were read, over all seeds and of each."""
    found = scores_of(rows, files)
    metrics: Metrics = {}
    with progress(f"{label}: intervals", len(found.rows)) as advance:
        for name, own in found.rows.items():
            scores, figures = [files[row.id]["scores"] for row in own], figures_of(found.scored[name], samples)
            metrics[name] = {c: replace(one, other_losses=_other_losses(c, scores)) for c, one in figures.items()}
            advance(1)
    found = replace(found, metrics=metrics)
    seeds = list(found.scored_by_seed)
    if len(seeds) == 1:
        return replace(found, by_seed={seeds[0]: found})

    def alone(seed: int) -> Results:
        return results_of([row for row in rows if row.seed == seed], files, samples, f"{label}: seed {seed}")

    return replace(found, by_seed={seed: alone(seed) for seed in seeds})


def scores_of(rows: Sequence[RunRow], files: Files) -> Results:
    """Collect scores and histories of the rows that have a result, without figures, whose intervals take long."""
    found = Results({}, {}, {}, {}, {}, {})
    for row in (row for row in rows if row.id in files):
        found.rows.setdefault(row.name, []).append(row)
        scores = read_rows(files[row.id]["scores"]["examples"])
        found.scored_by_seed.setdefault(row.seed, {})[row.name] = scores
        history = found.histories.setdefault(row.name, [])
        history += [Round.of_row(one, row.seed) for one in files[row.id]["history"]]
    by_seed = dict(sorted(found.scored_by_seed.items()))
    scored = {name: over_seeds(by_seed[row.seed][name] for row in own) for name, own in found.rows.items()}
    return replace(found, scored=scored, scored_by_seed=by_seed)


def _other_losses(client: str, seeds: Sequence[Json]) -> dict[str, float]:
    """Test loss of the last round's model, and of the server's or the client's own where the row is about the other.

    A seed, with its examples and its clients' losses, counts by the client's test tokens at it, as in the row's loss.
    """
    known = [one["clients"].get(client, {}) for one in seeds]
    tokens = [sum(row.get("items", 0) for row in one["examples"] if row["client"] == client) for one in seeds]
    there = [name for name in ("last", "local", "server") if all(f"{name}_loss" in one for one in known)]
    return {name: fmean((one[f"{name}_loss"] for one in known), weights=tokens) for name in there}


def common_clients(metrics: Mapping[str, Json]) -> tuple[list[str], list[str]]:
    """(The clients of a mean over several runs, which all have; or if they share none, all), and all of any run."""
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
