"""Sensitivity analyses: comparisons with other seeds, weights, clusters or results of a seed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.evaluation.comparisons import Comparison, Effect, Sensitivity, compare
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.scores import Runs, Scored, ScoresBySeed, read_rows
from pipeline.tasks.task import Metric
from pipeline.workspace.files import read_json
from pipeline.workspace.record import Json

BySeed = Mapping[int, Runs]  # seed -> its runs' scores


def effects_with(
    one: Sensitivity, comparisons: Sequence[Comparison], runs: BySeed, metrics: Mapping[str, Metric], samples: int
) -> list[Effect]:
    """Return the effects of comparisons over groups that are still defined with one thing changed."""
    runs = {seed: own for seed, own in runs.items() if seed in (one.seeds or runs)}
    for seed, path in one.replace.items():
        runs = _with_results(runs, seed, read_json(path)["rows"])
    if one.groups is not None:
        runs = {s: {run: _in_groups(rows, one.groups) for run, rows in own.items()} for s, own in runs.items()}
    changed = ScoresBySeed(runs, metrics)

    def contrast(terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`."""
        found = changed.contrast(terms, metric, seed)
        return {"all": _joined(found)} if found and one.weigh == "examples" else found

    over_groups = [own for own in comparisons if own.over == "groups"]
    return [effect for effect in compare(over_groups, contrast, list(runs), samples) if effect.interval]


def _with_results(runs: BySeed, seed: int, rows: Sequence[Json]) -> BySeed:
    """Replace the results of a seed; runs that the rows lack are left out at every seed."""
    others: dict[str, list[Json]] = {}
    for row in rows:
        others.setdefault(row["run"], []).append({k: v for k, v in row.items() if k != "run"})
    found = {**runs, seed: {run: read_rows(own) for run, own in others.items()}}
    return {s: {run: own[run] for run in own if run in others} for s, own in found.items()}


def _in_groups(rows: Sequence[Scored], pattern: str) -> list[Scored]:
    """Rows whose meetings are called by the part of their name that matches a pattern, if one does."""
    matches = [re.match(pattern, row.meeting) for row in rows]
    return [replace(row, meeting=found[0]) if found else row for row, found in zip(rows, matches, strict=True)]


def _joined(clients: Mapping[str, Clusters]) -> Clusters:
    """Pool all clients, so that each example, or token, has the same weight."""
    own = list(clients.values())
    above, below = (np.concatenate([getattr(one, part) for one in own]) for part in ("numerator", "denominator"))
    return Clusters.of([name for client in own for name in client.names], above.tolist(), below.tolist())
