"""Small and read-only folders in a child's mount namespace, so that nothing stays mounted."""

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
SIZE = 64 << 20


def can_mount() -> bool:
    """Whether this user may mount."""
    return forked(lambda: _mount("-t", "tmpfs", "none", "/tmp")).status == 0


def small_disk(folder: Path) -> None:
    """Mount an empty disk at a folder, in this child."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder))


@contextmanager
def only(free: int, folder: Path) -> Iterator[None]:
    """Shrink a small disk until so many bytes are free."""
    found = os.statvfs(folder)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    _resize(folder, used + free)
    try:
        yield
    finally:
        _resize(folder, SIZE)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, for root as well."""
    folder.mkdir(exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _resize(folder: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


def _mount(*arguments: str) -> None:
    """Mount in a namespace that ends with this child."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "cannot create a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", *arguments], check=True)
