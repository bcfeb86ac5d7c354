"""`make federation`: when it ends, and how large it is. `make federation` itself runs the processes."""

import os
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.errors import QuorumError
from pipeline.federation import loopback


@pytest.mark.parametrize(("works", "ends"), [(0.0, True), (1e9, False)], ids=["computing", "idle"])
def test_a_demonstration_waits_while_its_sites_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: float, ends: bool
) -> None:
    """The server ends at its tenth poll. By this clock 100 s pass at each look, and 300 without work are too many."""
    polls = iter([None] * 9)
    server: Any = SimpleNamespace(pid=os.getpid(), returncode=0, poll=lambda: next(polls, 0))
    monkeypatch.setattr(loopback, "time", SimpleNamespace(monotonic=count(0, 100).__next__, sleep=lambda _: None))
    monkeypatch.setattr(loopback, "_log", lambda *_: "")
    monkeypatch.setattr(loopback, "WORKED_SECONDS", works)
    with nullcontext() if ends else pytest.raises(QuorumError, match=r"has moved for 300 s; .* again, which continues"):
        loopback._wait(tmp_path, {"server": server})


@pytest.mark.parametrize(("seconds", "size"), [("2.5", 1.0), ("20", 0.25)])
def test_a_slow_first_step_makes_the_organisations_smaller_and_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str, size: float
) -> None:
    """All in steps of at most 5 s; a quarter in those of 20 s."""
    measured = iter([seconds])
    monkeypatch.setattr(loopback, "_command", lambda *_: next(measured))
    assert (loopback._size(tmp_path), loopback._size(tmp_path)) == (size, size)
