"""Memory of large tensors, where few of them come and go: given back when they are freed."""

from __future__ import annotations

import ctypes

from pipeline.model.processor import M_MMAP_MAX

M_MMAP_THRESHOLD = -3
"""See mallopt(3)."""
LARGE, MOST = 32 * 2**20, 65_536
"""Bytes from which on a tensor is large; glibc takes no larger limit. How many there are at most."""


def give_back_large_tensors() -> None:
    """Undo `keep_freed_memory` for large tensors, where the C library is glibc; elsewhere nothing changes.

    Decoding holds the sources of a batch in two tensors of a gigabyte. What such a tensor leaves is seldom whole when
    the next one comes, so that each batch would take new memory beside it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_MMAP_MAX, MOST)
