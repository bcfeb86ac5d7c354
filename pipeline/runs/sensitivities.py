"""Sensitivity analyses: comparisons with other seeds, weights, clusters or results of a seed."""

from __future__ import annotations

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

BySeed = Mapping[int, Runs]
"""Seed -> its runs' scores."""


def effects_with(
    one: Sensitivity, comparisons: Sequence[Comparison], runs: BySeed, metrics: Mapping[str, Metric], samples: int
) -> list[Effect]:
    """Return the effects of comparisons over groups that are still defined with one thing changed."""
    wanted = {seed: own for seed, own in runs.items() if seed in (one.seeds or runs)}
    changed = ScoresBySeed(_in_groups(one, _with_other_results(one, wanted)), metrics)

    def changed_contrast(terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`."""
        found = changed.contrast(terms, metric, seed)
        return {"all": _joined(found)} if found and one.weigh == "examples" else found

    over_groups = [own for own in comparisons if own.over == "groups"]
    return [effect for effect in compare(over_groups, changed_contrast, list(wanted), samples) if effect.interval]


def _with_other_results(one: Sensitivity, runs: BySeed) -> BySeed:
    """Replace the results of some seeds by other files; runs that such a file lacks are left out at every seed."""
    found = dict(runs)
    for seed, path in one.replace.items():
        rows: dict[str, list[Json]] = {}
        for row in read_json(path)["rows"]:
            rows.setdefault(row["run"], []).append({k: v for k, v in row.items() if k != "run"})
        found[seed] = {run: read_rows(own) for run, own in rows.items()}
        found = {s: {run: own for run, own in runs.items() if run in rows} for s, runs in found.items()}
    return found


def _in_groups(one: Sensitivity, runs: BySeed) -> BySeed:
    if one.groups is None:
        return runs
    pattern = re.compile(one.groups)

    def grouped(row: Scored) -> Scored:
        found = pattern.match(row.meeting)
        return replace(row, meeting=found[0]) if found else row

    return {seed: {run: [*map(grouped, rows)] for run, rows in own.items()} for seed, own in runs.items()}


def _joined(clients: Mapping[str, Clusters]) -> Clusters:
    """Pool all clients, so that each example, or token, has the same weight."""
    own = list(clients.values())
    above, below = (np.concatenate([getattr(one, part) for one in own]) for part in ("numerator", "denominator"))
    return Clusters.of([name for client in own for name in client.names], above.tolist(), below.tolist())
