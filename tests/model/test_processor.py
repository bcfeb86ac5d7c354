"""How a process computes here: its threads, and the memory that its tensors leave."""

import ctypes
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from pipeline.model import processor
from pipeline.model.processor import compute_with, return_large_tensors

PAGES = 64 * 2**20 // resource.getpagesize()
"""Of a block of 64 MiB."""
needs_glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="left out: the C library is not glibc"
)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def pages_cleared() -> int:
    """How many pages the kernel hands over, and clears, for a block of 64 MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@needs_glibc
def test_a_block_that_was_freed_serves_the_next() -> None:
    compute_with(1)
    # What is left between other blocks may be too small by a few bytes at first: the C library aligns tensors.
    assert min(pages_cleared() for _ in range(20)) < PAGES / 100


GIVEN_BACK = """
import resource
import torch
from pathlib import Path
from pipeline.model.processor import LARGE, compute_with, return_large_tensors

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

compute_with(1)
return_large_tensors()
large = torch.ones(LARGE)
before = resident()
del large
print((before - resident()) / (4 * LARGE))
"""


@needs_glibc
def test_a_large_tensor_is_given_back_where_few_come_and_go() -> None:
    """Four times the limit, in a new process: in this one a block that others left might serve."""
    found = subprocess.run([sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, check=True)
    assert float(found.stdout) > 0.95


def test_without_glibc_memory_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor.ctypes, "CDLL", lambda name: object())
    compute_with(1)
    return_large_tensors()
    assert torch.get_num_threads() == 1
