"""How a process computes on this machine: its number of threads, and when freed memory goes back to the kernel."""

import ctypes
from collections.abc import Callable

import torch

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -2, -3, -4  # see mallopt(3)
LARGE = 32 * 2**20  # bytes from which a tensor is large; glibc takes no higher limit
MOST = 65_536  # the number of large tensors that can be in use at once: glibc's own default


def compute_with(threads: int) -> None:
    """Compute with so many threads from now on; where the C library is glibc, let freed blocks serve the next tensors.

    By default glibc takes each block of 32 MiB or more from the kernel, and returns it when it is freed. A step that
    trains all of an encoder then waits for the kernel to clear the same pages again: a tenth of its time.
    """
    torch.set_num_threads(threads)
    _mallopt({M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 2**26})


def return_large_tensors() -> None:
    """Return large tensors to the kernel when they are freed, until the next `compute_with`.

    For work with few large tensors: decoding has the sources of a decoder's batch in two tensors of up to 0.75 GB. The
    block that such a tensor leaves is soon in use in part, so that the next one would not fit and take new memory.
    """
    _mallopt({M_MMAP_THRESHOLD: LARGE, M_MMAP_MAX: MOST})


def _mallopt(options: dict[int, int]) -> None:
    """Set options of glibc's malloc, in this order."""
    mallopt: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in options.items():
            mallopt(option, value)
