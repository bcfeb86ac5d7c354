"""Repair DVC's own files after a kill or a power cut: DVC writes them in place, and refuses to read half of one.

They are the list of current readers and writers (`rwlock`), and dvc.lock with the outputs of every stage. The complete
stages before the cut stay in dvc.lock. DVC restores the others from its cache, or runs them again. A dead user blocks
the next DVC as long as any process has its id, as 1 in a container.
"""

import json
import re
from contextlib import suppress
from pathlib import Path

import psutil

from pipeline.workspace import layout
from pipeline.workspace.files import locked, write_text
from pipeline.workspace.progress import say

STAGE = re.compile(r"^  \S", re.MULTILINE)  # the first line of a stage in dvc.lock


def mend(root: Path | None = None) -> None:
    """Repair the files of a repository (by default this one) and of its experiments, unless DVC is running there."""
    root = root or layout.home()
    for own in (path / "tmp" for path in [root / ".dvc", *root.glob("experiments/*/.dvc")]):
        for users in filter(Path.is_file, (own / "rwlock", own / "exps" / "rwlock")):
            with locked(users.with_name("rwlock.lock"), wait=False) as free:
                if free and not _is_used(users.read_text(encoding="utf-8", errors="replace")):
                    users.unlink()
                    say(f"{users}: was cut short, or lists no process of DVC, so it was removed")
        with locked(own / "lock", wait=False) as free:
            if free and (lock := own.parents[1] / "dvc.lock").is_file():
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


def _is_used(users: str) -> bool:
    """Whether it is complete, and empty or with the id of a process of DVC."""
    with suppress(ValueError):
        json.loads(users)
        processes = re.findall(r'"pid": (\d+)', users)
        return not processes or any(_is_dvc(int(process)) for process in processes)
    return False


def _is_dvc(process: int) -> bool:
    with suppress(psutil.Error):
        return any(Path(word).name == "dvc" for word in psutil.Process(process).cmdline())
    return False


def _is_lock(text: str) -> bool:
    import yaml
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from voluptuous import Invalid

    with suppress(yaml.YAMLError, Invalid):
        COMPILED_LOCKFILE_SCHEMA(yaml.load(text, yaml.CSafeLoader))
        return True
    return False
