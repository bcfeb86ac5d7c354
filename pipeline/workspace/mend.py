"""What a kill or a power cut left half-written of DVC's own files, which DVC writes in place and then refuses to read.

Those are the list of who reads and writes what now, and dvc.lock, which names what every stage has made. Of dvc.lock
the whole stages before the cut stay. Those after it are brought back from DVC's cache, or run again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pipeline.workspace import layout
from pipeline.workspace.files import locked_if_free, write_text
from pipeline.workspace.progress import say

STAGE = re.compile(r"^  \S", re.MULTILINE)
"""Where a stage begins in dvc.lock."""


def mend(root: Path | None = None) -> None:
    """Mend those of a repository (this one, if none is named) and of its experiments, unless DVC is at work on them."""
    root = root or layout.home()
    own = root / ".dvc" / "tmp"
    users = own / "rwlock"
    with locked_if_free(own / "rwlock.lock") as free:
        if free and users.is_file() and not _is_json(users):
            users.unlink()
            say(f"{users}: was cut short, so it was removed")
    with locked_if_free(own / "lock") as free:
        for lock in [root / "dvc.lock", *root.glob("experiments/*/dvc.lock")] if free else []:
            if lock.is_file():
                _mend_lock(lock)


def _mend_lock(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    whole = text
    while whole and not _is_lock(whole):
        starts = [found.start() for found in STAGE.finditer(whole)]
        whole = whole[: starts[-1]] if starts[1:] else ""
    if not whole:
        path.unlink()
        say(f"{path}: was cut short in its first stage, so it was removed")
    elif whole != text:
        write_text(path, whole)
        say(f"{path}: was cut short; its whole stages stay")


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def _is_lock(text: str) -> bool:
    import yaml
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from voluptuous import Invalid

    try:
        COMPILED_LOCKFILE_SCHEMA(yaml.load(text, yaml.CSafeLoader))
    except (yaml.YAMLError, Invalid):
        return False
    return True
