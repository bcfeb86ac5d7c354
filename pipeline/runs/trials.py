"""Trials of tuning, a small file in git each; several processes of one machine share the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.workspace import layout
from pipeline.workspace.files import locked, locked_if_free


def make_missing(trials: Mapping[Path, Callable[[Path], None]]) -> None:
    """Run every trial whose file is missing; trials that another process runs are awaited at the end.

    Args:
        trials: file -> function that trains the trial and writes the file.
    """
    for path, make in trials.items():
        with locked_if_free(layout.trial_lock(path)) as free:
            if free and not path.is_file():
                make(path)
    for path, make in trials.items():
        with locked(layout.trial_lock(path)):
            if not path.is_file():
                make(path)
