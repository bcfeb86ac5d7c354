"""What a process does to the files of its workspace, counted; at one of its operations something can happen to it.

It watches from outside: by audit events of Python, in place of `os.fsync`, and of connections to SQLite. Who is watched
stays so: it is a child that ends with its stage.
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
"""(which operation, its kind, whose: a path, or a file descriptor that is flushed) -> something, before it is done."""


class Operations:
    """Those of this process, from now on, in the folder that it works in."""

    def __init__(self, before: Before) -> None:
        self.count = 0
        self._before = before
        self._inside = f"{Path.cwd()}{os.sep}"
        self._watches = True
        sys.addaudithook(self._heard)
        self._flush = os.fsync
        os.fsync = self._flushed
        sqlite3.connect = partial(sqlite3.connect, factory=partial(_Watched, self))

    def happens(self, kind: str, whose: object) -> None:
        """An operation is about to be done; what is done in answer to it is none."""
        if self._watches:
            self.count += 1
            self._watches = False
            try:
                self._before(self.count, kind, whose)
            finally:
                self._watches = True

    def stop(self) -> None:
        """Count no more."""
        self._watches = False

    def _flushed(self, handle: int) -> None:
        if self._watches and self._is_inside(os.readlink(f"/proc/self/fd/{handle}")):
            self.happens("fsync", handle)
        self._flush(handle)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watches:
            return
        if event == "open":
            path, _, flags = arguments
            if flags & WRITING and isinstance(path, str | bytes | os.PathLike) and self._is_inside(os.fsdecode(path)):
                self.happens("open", os.fsdecode(path))
        elif event in CHANGES and self._is_inside(str(arguments[0])):
            self.happens(event, arguments[0])

    def _is_inside(self, path: str) -> bool:
        return not path.startswith("/") or f"{path}{os.sep}".startswith(self._inside)


class _Watched(sqlite3.Connection):
    """A connection whose statements and commits are operations.

    Its cache is so small that pages reach the file before their commit: a kill leaves a journal to roll back.
    """

    def __init__(self, operations: Operations, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._operations = operations
        super().execute("PRAGMA cache_size = 1")

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._operations.happens("sqlite", self)
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._operations.happens("sqlite", self)
        return super().executemany(*arguments)

    def commit(self) -> None:
        self._operations.happens("commit", self)
        super().commit()
        self._operations.happens("committed", self)


def is_file(whose: object) -> TypeGuard[int]:
    """Whether what is flushed is a file, no folder."""
    return isinstance(whose, int) and stat.S_ISREG(os.fstat(whose).st_mode)
