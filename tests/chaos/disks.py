"""A process's file operations, counted, and a disk whose power can be cut before any of them.

Operations are found by Python's audit events, a wrapper of `os.fsync`, and a subclass of SQLite's connection. None of
it is undone: the process is a child that ends with its stage.

And small and read-only folders in this process's own mount namespace, so that nothing stays mounted.
"""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

STATE = ("data", "models", "reports", "results", "work")
"""The folders in which stages write."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "fcntl.flock")
FULL = 2
BLOCK, SIZE = 4096, 64 << 20
Loss = Literal["names", "contents"]
"""What a cut takes of a file that was not flushed: the file with its name, or its content alone."""


class Operations:
    """This process's operations from now on, below its working folder; `count`: how many so far.

    `before`: what to do before one, of its number, its kind, and its path, file descriptor or connection.
    """

    def __init__(self, before: Callable[[int, str, Any], None]) -> None:
        self.count = 0
        self._before, self._inside, self._watches = before, f"{Path.cwd()}{os.sep}", True
        sys.addaudithook(self._audit)
        self._flush = os.fsync
        os.fsync = self._fsync
        sqlite3.connect = partial(sqlite3.connect, factory=partial(_Watched, self))

    def count_one(self, kind: str, whose: Any) -> None:
        """Count an operation and call `before`, whose own operations do not count."""
        if self._watches:
            self.count, self._watches = self.count + 1, False
            try:
                self._before(self.count, kind, whose)
            finally:
                self._watches = True

    def stop(self) -> None:
        self._watches = False

    def _fsync(self, handle: int) -> None:
        if self._is_inside(os.readlink(f"/proc/self/fd/{handle}")):
            self.count_one("fsync", handle)
        self._flush(handle)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watches or event not in ("open", *CHANGES):
            return
        path = arguments[0]
        writes = event in CHANGES or (arguments[2] & WRITING and isinstance(path, str | bytes | os.PathLike))
        if writes and self._is_inside(os.fsdecode(path) if event == "open" else str(path)):
            self.count_one(event, path)

    def _is_inside(self, path: str) -> bool:
        return not path.startswith("/") or f"{path}{os.sep}".startswith(self._inside)


class _Watched(sqlite3.Connection):
    """A connection whose statements, COMMIT included, are operations.

    With its small cache, pages reach the file before their commit, so a kill leaves a journal to roll back.
    """

    def __init__(self, operations: Operations, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._operations = operations
        self.execute("PRAGMA cache_size = 1")
        self.set_trace_callback(lambda statement: operations.count_one("sqlite", self))

    def commit(self) -> None:
        super().commit()
        self._operations.count_one("committed", self)


class Disk:
    """The disk below this process's working folder: after a cut it has what was flushed, and nothing else.

    What is there at first is flushed. Then the content of a file is, or the names in a folder, when the process says
    so. After SQLite commits with `synchronous = FULL`, a cut may roll the last commit back, and keeps the one before
    it. With less it keeps neither.
    """

    def __init__(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        self._root = Path.cwd()
        self._open: dict[int, int] = {}
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._committed: dict[str, bytes] = {}
        for path in [self._root, *self._root.rglob("*")]:
            self._flush(path)

    def note(self, kind: str, whose: Any) -> None:
        """Record an operation; see `Operations`."""
        if kind == "fsync":
            self._flush(Path(os.readlink(f"/proc/self/fd/{whose}")))
        elif kind == "committed":
            ((synchronous,),) = whose.execute("PRAGMA synchronous")
            ((_, _, name),) = whose.execute("PRAGMA database_list")
            if synchronous >= FULL:
                self._flush(Path(name).parent)
                self._flush(Path(name), self._committed.get(name, b""))
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
        for name in STATE:
            shutil.rmtree(name, ignore_errors=True)
        for path in (Path(name) for name in files if name.startswith(STATE)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[str(path)])

    def _below(self, folder: int, above: str) -> dict[str, bytes]:
        """Path -> content of every file below a folder's inode, by flushed names."""
        found: dict[str, bytes] = {}
        for name, inode in self._names[folder].items():
            if inode in self._names:
                found |= self._below(inode, f"{above}{name}/")
            else:
                found[above + name] = self._contents.get(inode, b"")
        return found

    def _flush(self, path: Path, content: bytes | None = None) -> None:
        """Record a file's content, or a folder's names: a new folder in it exists, too, and is empty.

        What is recorded stays open, so that the system gives its inode's number to no other file.
        """
        inode = path.stat().st_ino
        if inode not in self._open:
            self._open[inode] = os.open(path, os.O_RDONLY)
        if not path.is_dir():
            self._contents[inode] = path.read_bytes() if content is None else content
            return
        self._names[inode] = {entry.name: entry.inode() for entry in os.scandir(path)}
        for entry in os.scandir(path):
            if entry.is_dir():
                self._names.setdefault(entry.inode(), {})


@contextmanager
def small_disk(folder: Path, size: int = SIZE) -> Iterator[Path]:
    """An empty disk at a folder."""
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "none"):
        yield folder


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that is read-only, for root as well."""
    with _mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield


@contextmanager
def only(free: int, disk: Path) -> Iterator[None]:
    """A small disk shrunk until so many bytes are free."""
    found = os.statvfs(disk)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    resize = ["mount", str(disk), "-o"]
    subprocess.run([*resize, f"remount,size={used + free}"], check=True)
    try:
        yield
    finally:
        subprocess.run([*resize, f"remount,size={SIZE}"], check=True)


@contextmanager
def _mounted(folder: Path, *options: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
