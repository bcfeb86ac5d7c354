"""Prepared texts, as stages read them."""

from __future__ import annotations

from typing import Any

from pipeline.corpora.texts import read_texts
from pipeline.tasks.encoded import load_text_task
from pipeline.workspace import layout


def prepared(dataset: str, task: str) -> dict[str, Any]:
    """A data set's texts, by id.

    Raises:
        QuorumError: it is not prepared.
    """
    return read_texts(layout.raw_texts(dataset), load_text_task(task).kind)
