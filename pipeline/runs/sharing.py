"""Work that one run's stage does for the other planned runs of its group too.

Starting Python, loading the backbone and reading a test set cost as much for one run as for all. So the stage of
whichever run comes first does what can be done for all of them and keeps it in work/, by a hash of what it depends on;
the others find it there. DVC's stages stay one a run, each with its own dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from pipeline.errors import QuorumError
from pipeline.plan.orders import Order, planned_alike
from pipeline.runs.index import is_as_planned


class RunsJob(Protocol):
    """What a stage does for one run, and where that is kept: two runs with one path are one job."""

    @property
    def run_id(self) -> str: ...

    @property
    def order(self) -> Order: ...

    @property
    def path(self) -> Path: ...


RunsJobT = TypeVar("RunsJobT", bound=RunsJob)


def sharing_with(job: RunsJobT, job_of: Callable[[str], RunsJobT], waits: Callable[[RunsJobT], bool]) -> list[RunsJobT]:
    """The job first, then those of the other planned runs with the same order that are trained and still wait."""
    found = {job.path: job}
    for other in _others(job.run_id, job_of):
        if other.order == job.order and other.path not in found and waits(other):
            found[other.path] = other
    return list(found.values())


def label(stage: str, jobs: Sequence[RunsJob]) -> str:
    """What a progress bar calls them."""
    return f"{stage} {jobs[0].run_id}" + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")


def _others(run_id: str, job_of: Callable[[str], RunsJobT]) -> Iterator[RunsJobT]:
    for row in planned_alike(run_id):
        if row.id != run_id:
            try:
                if is_as_planned(row.id):
                    yield job_of(row.id)
            except QuorumError:  # an earlier stage of that run is still to come: its own stage will say so
                continue
