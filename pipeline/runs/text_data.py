"""Reads the prepared texts of a data set."""

from __future__ import annotations

from typing import Any

from pipeline.corpora.texts import read_texts
from pipeline.tasks.encoded import load_text_task
from pipeline.workspace import layout


def prepared(dataset: str, task: str) -> dict[str, Any]:
    """Read a data set's texts: id -> text.

    Raises:
        QuorumError: it is not prepared.
    """
    return read_texts(layout.raw_texts(dataset), load_text_task(task).kind)
