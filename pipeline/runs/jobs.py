"""What generate and evaluate do for one run, and how the first of a group's runs does it for all.

Starting Python, loading the backbone and reading a test set cost as much for one run as for all. So the stage of
whichever run comes first does what can be done for all of them and keeps it in work/, by a hash of what it depends on;
the others find it there. DVC's stages stay one a run, each with its own dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline.errors import QuorumError
from pipeline.model.entry import Entry, entry_file
from pipeline.model.tensor_file import digest_of_tensors
from pipeline.plan.orders import EvaluateOrder, GenerateOrder, Order, planned_alike, read_order
from pipeline.runs.index import Encoded, is_as_planned, read_encoded
from pipeline.tasks.task import Prediction
from pipeline.workspace import layout
from pipeline.workspace.files import locked, read_json, sha256_file, sha256_json, write_json


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


@dataclass(frozen=True)
class DecodingJob:
    """One run's summaries: whose adapter (a file, its digest) writes which example, and where the texts are kept.

    `limits`: the source and target tokens that its examples are cut to. `known_by`: digests of the backbone and of the
    code that encodes, by which the prefix store knows its examples.
    """

    run_id: str
    order: GenerateOrder
    tests: list[tuple[str, Entry]]
    limits: tuple[int, int]
    known_by: tuple[str, str]
    adapters: dict[str, Path]
    digests: dict[str, str]
    path: Path

    def made(self) -> dict[str, Prediction]:
        """Example id -> prediction, as far as decoded."""
        if not self.path.is_file():
            return {}
        kept: dict[str, list[Any]] = read_json(self.path, remedy=f"delete {self.path} and run again")
        return {identity: Prediction(*row) for identity, row in kept.items()}

    def keep(self, made: Mapping[str, Prediction]) -> None:
        """Write predictions down beside those that are there."""
        with locked(self.path.with_suffix(".lock")):
            write_json(self.path, {identity: astuple(one) for identity, one in (self.made() | dict(made)).items()})

    def missing(self) -> list[tuple[str, Entry]]:
        """(client, entry) of what is still to be decoded; nothing where the run decodes none."""
        if self.order.rule is None or self.order.turns is not None:
            return []
        done = self.made()
        return [(client, entry) for client, entry in self.tests if entry.id not in done]

    def unread(self) -> list[tuple[str, Entry]]:
        """(client, entry) of what the prefix store lacks; nothing where the run has no use for it."""
        return [
            (client, entry)
            for client, entry in self.tests
            if not entry.source and not entry_file(layout.store(), entry.key).is_file()
        ]

    def waits(self) -> bool:
        return bool(self.missing() or self.unread())


def decoding_job_of(run_id: str) -> DecodingJob:
    """A run's job.

    Raises:
        QuorumError: its order, index or an adapter is missing or damaged.
    """
    order = planned_decoding(run_id)
    encoded = read_encoded(run_id)
    adapters = {client: layout.adapter(run_id, client) for client in encoded.clients}
    return decoding_job(run_id, order, encoded, encoded.tests, adapters)


def planned_decoding(run_id: str) -> GenerateOrder:
    return read_order(layout.order("generate", run_id), GenerateOrder)


def decoding_job(
    run_id: str,
    order: GenerateOrder,
    encoded: Encoded,
    tests: Sequence[tuple[str, Entry]],
    adapters: Mapping[str, Path],
) -> DecodingJob:
    """What these adapters, a client's each, write of these of its examples.

    Raises:
        QuorumError: an adapter is missing or damaged.
    """
    digests = {client: digest_of_tensors(path) for client, path in adapters.items()}
    written = [[entry.id, entry.key, digests[client]] for client, entry in tests]
    # The corpora are where a summary's query and reference stand, of which it does not depend.
    cause = order.model_dump(mode="json", exclude={"corpora"})
    key = sha256_json([cause, encoded.index["backbone"], written])
    known_by = encoded.index["backbone"], encoded.index["encoding"]
    kept = layout.generated() / f"{key}.json"
    return DecodingJob(run_id, order, list(tests), encoded.limits, known_by, dict(adapters), digests, kept)


@dataclass(frozen=True)
class ScoringJob:
    """One run's scores, and where they are kept."""

    run_id: str
    order: EvaluateOrder
    path: Path

    def waits(self) -> bool:
        return not self.path.is_file()


def scoring_job_of(run_id: str) -> ScoringJob:
    """A run's job.

    Raises:
        QuorumError: its order, predictions, index or adapters are missing.
    """
    order = read_order(layout.order("evaluate", run_id), EvaluateOrder)
    needed = [layout.predictions(run_id), layout.encoded_index(run_id), layout.BACKBONE / layout.ABOUT_BACKBONE]
    for path in needed:
        if not path.is_file():
            raise QuorumError(f"{path}: is missing; run `dvc repro`")
    adapters = sorted(layout.adapters(run_id).glob("*.safetensors"))
    if not adapters and read_encoded(run_id).clients:
        raise QuorumError(f"{layout.adapters(run_id)}: holds no adapter; run `dvc repro`")
    contents = {path.name: sha256_file(path) for path in [*needed, *adapters]}
    key = sha256_json([order.model_dump(mode="json"), contents])
    return ScoringJob(run_id, order, layout.evaluated() / f"{key}.json")
