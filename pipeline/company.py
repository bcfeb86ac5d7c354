"""Work that one run's stage does for the other planned runs too.

Starting Python, loading the backbone and reading a test set cost as much for one run as for all. So the stage of
whichever run comes first does what can be done for all of them and keeps it in work/, by a hash of what it depends on;
the others find it there. DVC's stages stay one a run, each with its own dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from pipeline import layout
from pipeline.errors import QuorumError
from pipeline.spec import MainSpec, Spec, read_spec
from pipeline.trained import is_as_planned


class RunsJob(Protocol):
    """What a stage does for one run."""

    @property
    def run_id(self) -> str: ...

    @property
    def spec(self) -> Spec: ...


Job = TypeVar("Job", bound=RunsJob)


def company_of(job: Job, job_of: Callable[[str], Job], waits: Callable[[Job], bool]) -> list[Job]:
    """The job first, then those of the other planned runs with the same spec that are trained and still wait."""
    return [job, *(other for other in _others(job.run_id, job_of) if other.spec == job.spec and waits(other))]


def _others(run_id: str, job_of: Callable[[str], Job]) -> Iterator[Job]:
    for row in read_spec(layout.stage_spec("main"), MainSpec).runs:
        if row.id != run_id:
            try:
                if is_as_planned(row.id):
                    yield job_of(row.id)
            except QuorumError:  # an earlier stage of that run is still to come: its own stage will say so
                continue
