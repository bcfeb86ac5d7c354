"""Two ways of doing one thing, timed in turn in one process, and the row of the table that comes of it."""

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS, THEIRS = "ours", "theirs"


@dataclass(frozen=True)
class Spread:
    """Repeated measurements of one side."""

    median: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Row:
    """One line of the benchmark table.

    `ratio` is in favour of Quorum: how many times faster, or the share reached; `promised` is its aim. A row that
    could not be measured here says why in `skipped`.
    """

    what: str
    against: str
    ratio: float | None = None
    promised: float | None = None
    ours: Spread | None = None
    theirs: Spread | None = None
    unit: str = "s"
    skipped: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


def interleaved(
    sides: Mapping[str, Callable[[], Any]],
    repeats: int,
    *,
    warm: bool = True,
    settle: Callable[[], None] | None = None,
) -> tuple[dict[str, Spread], dict[str, Any]]:
    """Time each side `repeats` times in turn: (seconds, last results).

    Args:
        warm: run each side once before, uncounted.
        settle: waits for what a side has started elsewhere, on a GPU.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    results: dict[str, Any] = {}
    for repeat in range(repeats + warm):
        for name, run in sides.items():
            gc.collect()
            began = time.perf_counter()
            results[name] = run()
            if settle is not None:
                settle()
            if repeat >= warm:
                seconds[name].append(time.perf_counter() - began)
    return {name: spread(values) for name, values in seconds.items()}, results


def spread(values: list[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values), len(values))


def peak_memory() -> float:
    """The largest resident set of this process so far, in MB.

    Linux's `ru_maxrss` is inherited from the process that started this one, so /proc is asked where there is one.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
