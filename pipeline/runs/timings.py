"""How long a training took on this machine."""

from __future__ import annotations

from typing import Any

from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def timed_training(run: str) -> dict[str, Any]:
    """The seconds of a run's training, in all and of each client's rounds.

    Empty if it trained nothing, or the note is of another training, as where a copy of the workspace has written it.
    Two runs that are about the same training, before and after the server averages, both have its seconds.
    """
    note, made = layout.timing("train", run), layout.trained_as(run)
    timed: dict[str, Any] = read_json(note) if note.is_file() and made.is_file() else {}
    return timed if timed and timed["rounds"] and timed["training"] == read_json(made)["training"] else {}
