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


def can_mount() -> bool:
    """Whether this user may mount."""
    return forked(lambda: _mount("-t", "tmpfs", "none", "/tmp")).status == 0


def small_disk(folder: Path) -> None:
    """Mount an empty disk of 64 MB at a folder, in this child."""
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", "size=64m", "none", str(folder))


@contextmanager
def only(free: int, folder: Path) -> Iterator[None]:
    """Fill a small disk until so many bytes are free."""
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
    """Make a folder read-only, for root as well."""
    folder.mkdir(exist_ok=True)
    _mount("--bind", str(folder), str(folder))
    subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _mount(*arguments: str) -> None:
    """Mount in a namespace that ends with this child."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "cannot create a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", *arguments], check=True)
