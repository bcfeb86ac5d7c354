"""How long a training took on this machine."""

from __future__ import annotations

from typing import Any

from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def timed_training(run: str) -> dict[str, Any]:
    """The seconds of a run's training, in all and of each client's rounds.

    Empty if it trained nothing, or was timed elsewhere: copies of the workspace share one note.
    """
    note, made = layout.timing("train", run), layout.trained_as(run)
    timed: dict[str, Any] = read_json(note) if note.is_file() and made.is_file() else {}
    return timed if timed and timed["rounds"] and timed["training"] == read_json(made)["training"] else {}
