"""Repair DVC's own files after a kill or a power cut: DVC writes them in place, and refuses to read half of one.

They are the list of current readers and writers (`rwlock`), and dvc.lock with the outputs of every stage. The complete
stages before the cut stay in dvc.lock. DVC restores the others from its cache, or runs them again.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from pipeline.workspace import layout
from pipeline.workspace.files import locked, write_text
from pipeline.workspace.progress import say

STAGE = re.compile(r"^  \S", re.MULTILINE)
"""The first line of a stage in dvc.lock."""


def mend(root: Path | None = None) -> None:
    """Repair the files of a repository (by default this one) and of its experiments, unless DVC is running there."""
    root = root or layout.home()
    own = root / ".dvc" / "tmp"
    users = own / "rwlock"
    with locked(own / "rwlock.lock", wait=False) as free:
        if free and users.is_file() and not _is_json(users):
            users.unlink()
            say(f"{users}: was cut short, so it was removed")
    with locked(own / "lock", wait=False) as free:
        for lock in [*root.glob("dvc.lock"), *root.glob("experiments/*/dvc.lock")] if free else []:
            _mend_lock(lock)


def _mend_lock(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    complete = text
    while complete and not _is_lock(complete):
        starts = [found.start() for found in STAGE.finditer(complete)]
        complete = complete[: starts[-1]] if starts[1:] else ""
    if not complete:
        path.unlink()
        say(f"{path}: was cut short in its first stage, so it was removed")
    elif complete != text:
        write_text(path, complete)
        say(f"{path}: was cut short; its complete stages stay")


def _is_json(path: Path) -> bool:
    with suppress(ValueError):
        json.loads(path.read_bytes())
        return True
    return False


def _is_lock(text: str) -> bool:
    import yaml
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from voluptuous import Invalid

    with suppress(yaml.YAMLError, Invalid):
        COMPILED_LOCKFILE_SCHEMA(yaml.load(text, yaml.CSafeLoader))
        return True
    return False
