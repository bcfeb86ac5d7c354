"""The labels and colours of runs, the same in every table and figure of a page, and their limits on tokens."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.plan.orders import RunRow
from pipeline.report.figures.style import colour


def labels(runs: Sequence[RunRow]) -> dict[str, str]:
    """Run -> its label: its method or part; a second run of the same adds its own name."""
    named: dict[str, str] = {}
    for row in runs:
        if row.name not in named:
            taken = row.part in named.values()
            named[row.name] = f"{row.part} ({row.name})" if taken else row.part
    return named


def colours(runs: Sequence[RunRow]) -> dict[str, str]:
    """Run -> its colour, one a method or part: the same in every figure of the page."""
    kinds = list(dict.fromkeys(row.part for row in runs))
    return {row.name: colour(kinds.index(row.part)) for row in runs}


def tokens_of(row: RunRow) -> str:
    """The most tokens that a run with a model reads of a source and of a target."""
    assert row.learner is not None
    return f"{row.learner.view.source_tokens} / {row.learner.view.target_tokens}"
