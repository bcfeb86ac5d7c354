"""Reads the prepared texts of a data set."""

from __future__ import annotations

from typing import Any

from pipeline.corpora.example import read_examples
from pipeline.tasks.task import load_task
from pipeline.workspace import layout


def prepared(dataset: str, task: str) -> dict[str, Any]:
    """Read a data set's texts: id -> text.

    Raises:
        QuorumError: it is not prepared.
    """
    return read_examples(layout.raw_texts(dataset), load_task(task).kind)
