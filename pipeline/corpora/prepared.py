"""Which corpora a group of runs reads."""

from __future__ import annotations

from pathlib import Path

from pipeline.corpora.example import Example, read_all_examples
from pipeline.workspace import layout


def prepared(group: str) -> list[Path]:
    """The files that a group's settings are made from: the main table is about QMSum (and one's own) alone."""
    return [layout.examples("qmsum")] if group == layout.MAIN else sorted(layout.PREPARED.glob("*/examples.jsonl"))


def examples_of(group: str) -> dict[str, Example]:
    """All of their examples, by id."""
    return read_all_examples(prepared(group))
