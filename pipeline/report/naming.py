"""How a page names and colours runs, the same in every table and figure of it, and their limits on tokens."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.plan.orders import RunRow
from pipeline.report.figures.style import Look, colour


def looks(runs: Sequence[RunRow]) -> dict[str, Look]:
    """Run -> its look: a colour a method or part; a second run of the same adds its own name to the label."""
    found: dict[str, Look] = {}
    kinds = list(dict.fromkeys(row.part for row in runs))
    for row in runs:
        taken = any(one.label == row.part for name, one in found.items() if name != row.name)
        label = f"{row.part} ({row.name})" if taken else row.part
        found.setdefault(row.name, Look(label, colour(kinds.index(row.part))))
    return found


def tokens_of(row: RunRow) -> str:
    """The most tokens that a run with a model reads of a source and of a target."""
    assert row.learner is not None
    return f"{row.learner.view.source_tokens} / {row.learner.view.target_tokens}"
