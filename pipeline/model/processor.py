"""How a process computes on this machine: with how many threads, and without giving memory back between two steps."""

from __future__ import annotations

import ctypes

import torch

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
"""See mallopt(3)."""


def compute_with(threads: int) -> None:
    """From here on the process computes with so many threads, and keeps the memory that its tensors leave."""
    torch.set_num_threads(threads)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Blocks that are freed serve the next tensors, where the C library is glibc; elsewhere nothing changes.

    By default glibc takes each block of 32 MiB or more from the kernel and gives it back when it is freed. A step that
    trains a whole encoder then waits for the kernel to clear the same pages again: a tenth of its time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(M_TOP_PAD, 2**26)
