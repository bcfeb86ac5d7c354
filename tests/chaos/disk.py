"""A disk whose power can be cut: it keeps what it was made to take, and nothing else.

It records what a process flushes: the content of a file, or the names in a folder. It takes SQLite at its word: with
`synchronous = FULL` the last commit may be rolled back, the one before it is there; with less there is none.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Literal

from ladder import STATE

FULL = 2
Loss = Literal["names", "contents"]
"""What is gone of what was not flushed: a file with its name, or its content alone, so that it is empty."""


class Disk:
    """That under the folder which this process works in; what lies there already is on it."""

    def __init__(self, aside: Path) -> None:
        """`aside`: a folder for links, so that no number of an inode comes twice."""
        self._root = Path.cwd()
        self._aside = aside
        self._aside.mkdir()
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: list[int] = []
        self._committed: dict[str, bytes] = {}
        for path in [self._root, *self._root.rglob("*")]:
            (self._take_names if path.is_dir() else self._take_content)(path)

    def flushed(self, handle: int) -> None:
        """By `os.fsync`."""
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        (self._take_names if stat.S_ISDIR(os.fstat(handle).st_mode) else self._take_content)(path)

    def committed(self, database: sqlite3.Connection) -> None:
        """By SQLite, which also flushes the names beside its file."""
        ((synchronous,),) = sqlite3.Connection.execute(database, "PRAGMA synchronous")
        ((_, _, name),) = sqlite3.Connection.execute(database, "PRAGMA database_list")
        path = Path(name)
        if synchronous >= FULL:
            self._take_content(path, self._committed.get(name, b""))
            self._take_names(path.parent)
            self._committed[name] = path.read_bytes()

    def after_a_cut(self, loss: Loss) -> dict[str, bytes]:
        """Path -> content of every file that is there when the power comes back."""
        if loss == "names":
            return self._below(self._root.stat().st_ino, "")
        files = (path for path in self._root.rglob("*") if path.is_file())
        return {str(path.relative_to(self._root)): self._contents.get(path.stat().st_ino, b"") for path in files}

    def cut(self, loss: Loss) -> None:
        """Leave in the folder what a power cut would."""
        files = self.after_a_cut(loss)
        for name in STATE:
            path = self._root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for name, content in files.items():
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            (self._root / name).write_bytes(content)

    def _below(self, folder: int, above: str) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name, inode in self._names[folder].items():
            if inode in self._names:
                found |= self._below(inode, f"{above}{name}/")
            else:
                found[above + name] = self._contents.get(inode, b"")
        return found

    def _take_content(self, path: Path, content: bytes | None = None) -> None:
        inode = path.stat().st_ino
        self._contents[inode] = path.read_bytes() if content is None else content
        if not (self._aside / str(inode)).exists():
            os.link(path, self._aside / str(inode))

    def _take_names(self, folder: Path) -> None:
        """A new folder below is there, too, and empty: its own names are taken when it is flushed."""
        self._open.append(os.open(folder, os.O_RDONLY))
        self._names[folder.stat().st_ino] = {entry.name: entry.inode() for entry in os.scandir(folder)}
        for entry in os.scandir(folder):
            if entry.is_dir():
                self._names.setdefault(entry.inode(), {})
