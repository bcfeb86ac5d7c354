"""Sensitivity analyses: comparisons with other seeds, weights, clusters or results of a seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.evaluation.comparisons import Comparisons, Effect, Sensitivity, compare
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.scores import Runs, Scored, contrast, over_seeds
from pipeline.workspace.files import read_json

Rows = Sequence[Mapping[str, Any]]
BySeed = Mapping[int, Mapping[str, Rows]]
"""Seed -> run -> its examples' rows, as results have them."""


def sensitivities(config: Comparisons, rows: BySeed, samples: int) -> list[tuple[str, list[Effect]]]:
    """Return (title, the effects that are still defined) for each sensitivity of comparisons.yaml."""
    return [(one.title, _effects(config, one, rows, samples)) for one in config.sensitivities]


def _effects(config: Comparisons, one: Sensitivity, rows: BySeed, samples: int) -> list[Effect]:
    changed = _with_other_results(one, {seed: own for seed, own in rows.items() if seed in (one.seeds or rows)})
    names = set.union(*map(set, changed.values())) if changed else set()
    alone: dict[int | None, Runs] = {seed: _scored(one, [own]) for seed, own in changed.items()}
    alone[None] = _scored(one, list(changed.values()))

    def changed_contrast(terms: Mapping[str, float], metric: str, seed: int | None) -> dict[str, Clusters] | None:
        found = contrast(alone[seed], terms, metric)
        return {"all": _joined(found)} if found and one.weigh == "examples" else found

    wanted = [
        own for own in config.comparisons if own.over == "groups" and own.seeds is None and set(own.terms) <= names
    ]
    return [effect for effect in compare(wanted, changed_contrast, list(changed), samples) if effect.interval]


def _with_other_results(one: Sensitivity, rows: BySeed) -> BySeed:
    """Replace the results of some seeds by other files; runs that such a file lacks are left out at every seed."""
    found = dict(rows)
    for seed, path in one.replace.items():
        own: dict[str, list[Mapping[str, Any]]] = {}
        for row in read_json(path)["rows"]:
            own.setdefault(row["run"], []).append({k: v for k, v in row.items() if k != "run"})
        found = {s: {run: runs[run] for run in own if run in runs} for s, runs in found.items()} | {seed: own}
    return found


def _scored(one: Sensitivity, seeds: Sequence[Mapping[str, Rows]]) -> Runs:
    runs = {run: over_seeds([own[run] for own in seeds if run in own]) for run in {r for own in seeds for r in own}}
    if one.groups is None:
        return runs
    pattern = re.compile(one.groups)
    return {run: [_in_group(row, pattern) for row in own] for run, own in runs.items()}


def _in_group(row: Scored, pattern: re.Pattern[str]) -> Scored:
    found = pattern.match(row.meeting)
    return replace(row, meeting=found[0]) if found else row


def _joined(clients: Mapping[str, Clusters]) -> Clusters:
    """Pool all clients, so that each example, or token, has the same weight."""
    own = list(clients.values())
    names = [name for client in own for name in client.names]
    above, below = (np.concatenate([getattr(one, part) for one in own]) for part in ("numerator", "denominator"))
    return Clusters.of(names, above.tolist(), below.tolist())
