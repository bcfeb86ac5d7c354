"""What a page keeps of its folders, which DVC leaves as they are."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

KINDS = (".csv", ".png", ".svg")


def remove_others(folder: Path, names: Set[str]) -> None:
    """Remove tables and figures that are not named: an earlier plan left them, and nobody would know them as old."""
    for path in folder.glob("*"):
        if path.suffix in KINDS and path.stem not in names:
            path.unlink()
