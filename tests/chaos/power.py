"""A disk whose power can be cut: it keeps what was flushed, and nothing else.

It records what a process flushes: the content of a file, or the names in a folder. After SQLite commits with
`synchronous = FULL`, a cut may roll the last commit back, and keeps the one before it. With less it keeps neither.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Literal

from snapshots import STATE

FULL = 2
Loss = Literal["names", "contents"]
"""What a cut takes of a file that was not flushed: the file with its name, or its content alone."""


class Disk:
    """The disk below this process's working folder. What is there already is flushed.

    Args:
        links: a folder for links to all files, so that the system reuses no inode number.
    """

    def __init__(self, links: Path) -> None:
        self._root = Path.cwd()
        self._links = links
        self._links.mkdir()
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: list[int] = []
        self._committed: dict[str, bytes] = {}
        for path in [self._root, *self._root.rglob("*")]:
            (self._flush_names if path.is_dir() else self._flush_content)(path)

    def note(self, kind: str, whose: object) -> None:
        """Record an operation; see `operations.Before`."""
        if kind == "fsync" and isinstance(whose, int):
            path = Path(os.readlink(f"/proc/self/fd/{whose}"))
            (self._flush_names if stat.S_ISDIR(os.fstat(whose).st_mode) else self._flush_content)(path)
        elif kind == "committed" and isinstance(whose, sqlite3.Connection):
            ((synchronous,),) = sqlite3.Connection.execute(whose, "PRAGMA synchronous")
            ((_, _, name),) = sqlite3.Connection.execute(whose, "PRAGMA database_list")
            if synchronous >= FULL:
                self._flush_content(Path(name), self._committed.get(name, b""))
                self._flush_names(Path(name).parent)
                self._committed[name] = Path(name).read_bytes()

    def after_a_cut(self, loss: Loss) -> dict[str, bytes]:
        """Path -> content of every file that a cut leaves."""
        if loss == "names":
            return self._below(self._root.stat().st_ino, "")
        files = (path for path in self._root.rglob("*") if path.is_file())
        return {str(path.relative_to(self._root)): self._contents.get(path.stat().st_ino, b"") for path in files}

    def cut(self, loss: Loss) -> None:
        """Leave in the folder what a cut leaves."""
        files = self.after_a_cut(loss)
        for path in (self._root / name for name in STATE):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for name, content in files.items():
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            (self._root / name).write_bytes(content)

    def _below(self, folder: int, above: str) -> dict[str, bytes]:
        """Path -> content of every file below a folder's inode, by flushed names."""
        found: dict[str, bytes] = {}
        for name, inode in self._names[folder].items():
            if inode in self._names:
                found |= self._below(inode, f"{above}{name}/")
            else:
                found[above + name] = self._contents.get(inode, b"")
        return found

    def _flush_content(self, path: Path, content: bytes | None = None) -> None:
        inode = path.stat().st_ino
        self._contents[inode] = path.read_bytes() if content is None else content
        if not (self._links / str(inode)).exists():
            os.link(path, self._links / str(inode))

    def _flush_names(self, folder: Path) -> None:
        """A new folder below exists too, empty until its own names are flushed."""
        self._open.append(os.open(folder, os.O_RDONLY))
        self._names[folder.stat().st_ino] = {entry.name: entry.inode() for entry in os.scandir(folder)}
        for entry in os.scandir(folder):
            if entry.is_dir():
                self._names.setdefault(entry.inode(), {})
