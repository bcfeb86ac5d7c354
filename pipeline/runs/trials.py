"""Trials of tuning, a small file in git each; several processes of one machine share the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from pipeline.workspace import layout
from pipeline.workspace.files import locked, locked_if_free


class HasSplit(Protocol):
    """An example or a text that belongs to a split."""

    @property
    def split(self) -> str:
        """`train`, `val` or `test`."""


Item = TypeVar("Item", bound=HasSplit)


def without_tests(items: Mapping[str, Item]) -> dict[str, Item]:
    """Leave test examples out, which no choice may see."""
    return {identity: item for identity, item in items.items() if item.split != "test"}


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
