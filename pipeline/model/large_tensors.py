"""Memory of large tensors is given back when they are freed: for work in which few of them come and go."""

from __future__ import annotations

import ctypes

from pipeline.model.processor import M_MMAP_MAX

M_MMAP_THRESHOLD = -3
"""See mallopt(3)."""
LARGE = 32 * 2**20
"""Bytes from which on a tensor is large; glibc takes no higher limit."""
MOST = 65_536
"""So many large tensors may be held at once: glibc's own default."""


def give_back_large_tensors() -> None:
    """Undo `keep_freed_memory` for large tensors, where the C library is glibc; elsewhere nothing changes.

    Decoding holds the sources of a decoder's batch in two tensors of up to 0.75 GB. What such a tensor leaves is seldom
    whole when the next one comes, so that each batch would take new memory beside it. `compute_with` undoes this again.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_MMAP_MAX, MOST)
