"""Folders that are small or cannot be written, each in a child's own view of the disk: nothing stays mounted."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forked import forked

CLONE_NEWNS = 0x20000
BLOCK = 4096


def can_mount() -> bool:
    """Whether this user may."""
    return forked(lambda: _mount("-t", "tmpfs", "none", "/tmp")).status == 0


def small_disk(folder: Path) -> None:
    """Let a folder be a disk of its own in this child, empty."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", "size=64m", "none", str(folder))


@contextmanager
def only(free: int, folder: Path) -> Iterator[None]:
    """As long as it lasts, a small disk has so many bytes free."""
    ballast = folder / "ballast"
    with ballast.open("wb") as stream:
        for chunk in (BLOCK * 256, BLOCK):
            while _free(folder) >= free + chunk:
                stream.write(bytes(chunk))
                stream.flush()
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """As long as it lasts, nothing below a folder can be written, by root neither."""
    folder.mkdir(exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    _call("mount", "-o", "remount,bind,ro", str(folder))
    try:
        yield
    finally:
        _call("umount", str(folder))


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _mount(*arguments: str) -> None:
    """In this child's own view, which ends with it."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "cannot have a view of the disk of one's own")
    _call("mount", "--make-rprivate", "/")
    _call("mount", *arguments)


def _call(*command: str) -> None:
    subprocess.run(command, check=True)
