"""Which of the kept runs share a table: those that have been tested on the same meetings."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.plan.orders import RunRow
from pipeline.workspace import layout


def of_whole_seeds(kept: Sequence[RunRow], planned: Sequence[RunRow]) -> list[RunRow]:
    """Those of the kept runs that stand in one table: means over other meetings than a row beside has say nothing.

    Where no run is kept at all of the table's seeds, those at the seed that most are kept at, the first of equals.
    """
    seeds = whole_seeds(kept, planned)
    seeds_of: dict[str, set[int]] = {}
    for row in kept:
        seeds_of.setdefault(row.name, set()).add(row.seed)
    shared = [row for row in kept if row.seed in seeds and seeds_of[row.name] >= set(seeds)]
    if shared:
        return shared
    most = max(seeds, key=lambda seed: (sum(row.seed == seed for row in kept), -seed))
    return [row for row in kept if row.seed == most]


def whole_seeds(kept: Sequence[RunRow], planned: Sequence[RunRow]) -> list[int]:
    """The seeds at which every run of the main table is kept; where there is none, those of any."""
    known = {(row.name, row.seed) for row in kept}
    wanted: dict[int, set[tuple[str, int]]] = {}
    for row in planned:
        if layout.group_of(row.id) == layout.MAIN:
            wanted.setdefault(row.seed, set()).add((row.name, row.seed))
    return [seed for seed, own in sorted(wanted.items()) if own <= known] or sorted({row.seed for row in kept})
