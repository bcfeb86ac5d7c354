"""Count a process's file operations, and do something before any of them.

They are found by Python's audit events, a wrapper of `os.fsync`, and a subclass of SQLite's connection. None of it is
undone: the process is a child that ends with its stage.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "fcntl.flock")

Before = Callable[[int, str, object], None]
"""(number of the operation, its kind, its path, file descriptor or connection) -> what to do before it."""


class Operations:
    """This process's operations from now on, below its working folder; `count`: how many so far."""

    def __init__(self, before: Before) -> None:
        self.count = 0
        self._before = before
        self._inside = f"{Path.cwd()}{os.sep}"
        self._watches = True
        sys.addaudithook(self._audit)
        self._flush = os.fsync
        os.fsync = self._fsync
        sqlite3.connect = partial(sqlite3.connect, factory=partial(_Watched, self))

    def count_one(self, kind: str, whose: object) -> None:
        """Count an operation and call `before`, whose own operations do not count."""
        if self._watches:
            self.count += 1
            self._watches = False
            try:
                self._before(self.count, kind, whose)
            finally:
                self._watches = True

    def stop(self) -> None:
        """Stop counting."""
        self._watches = False

    def _fsync(self, handle: int) -> None:
        if self._watches and self._is_inside(os.readlink(f"/proc/self/fd/{handle}")):
            self.count_one("fsync", handle)
        self._flush(handle)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watches:
            return
        if event == "open":
            path, _, flags = arguments
            if flags & WRITING and isinstance(path, str | bytes | os.PathLike) and self._is_inside(os.fsdecode(path)):
                self.count_one("open", os.fsdecode(path))
        elif event in CHANGES and self._is_inside(str(arguments[0])):
            self.count_one(event, arguments[0])

    def _is_inside(self, path: str) -> bool:
        return not path.startswith("/") or f"{path}{os.sep}".startswith(self._inside)


class _Watched(sqlite3.Connection):
    """A connection whose statements and commits are operations.

    With its small cache, pages reach the file before their commit, so a kill leaves a journal to roll back.
    """

    def __init__(self, operations: Operations, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._operations = operations
        super().execute("PRAGMA cache_size = 1")

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._operations.count_one("sqlite", self)
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._operations.count_one("sqlite", self)
        return super().executemany(*arguments)

    def commit(self) -> None:
        self._operations.count_one("commit", self)
        super().commit()
        self._operations.count_one("committed", self)


def is_file(whose: object) -> TypeGuard[int]:
    """Whether a file descriptor is a file's, and no folder's."""
    return isinstance(whose, int) and stat.S_ISREG(os.fstat(whose).st_mode)
