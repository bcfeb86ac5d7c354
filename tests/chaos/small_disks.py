"""Small and read-only folders in this process's own mount namespace, so that nothing stays mounted."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNS = 0x20000
BLOCK = 4096
SIZE = 64 << 20


def own_mounts() -> bool:
    """Whether this process and its children may have mounts of their own, which they do from now on."""
    return not (ctypes.CDLL(None).unshare(CLONE_NEWNS) or subprocess.run(["mount", "--make-rprivate", "/"]).returncode)


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
    _resize(disk, used + free)
    try:
        yield
    finally:
        _resize(disk, SIZE)


def _resize(disk: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


@contextmanager
def _mounted(folder: Path, *options: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *options, str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
