"""The work of generate and evaluate for one run, and how the first run of a group does it for all of them.

Starting Python, loading the backbone and reading a test set cost as much for one run as for all. So the first run's
stage does the work of all runs and caches it in work/, under a hash of what it depends on; the other stages find it
there. There is still one DVC stage for each run, with its own dependencies.
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
    """A stage's work for one run, and the file that caches it. Two runs with one path are one job."""

    @property
    def run_id(self) -> str:
        """The run that the work is for."""

    @property
    def order(self) -> Order:
        """The order of the run's stage."""

    @property
    def path(self) -> Path:
        """The file that caches the work."""

    def has_work(self) -> bool:
        """Whether something is left to do."""


RunsJobT = TypeVar("RunsJobT", bound=RunsJob)


def sharing_with(job: RunsJobT, job_of: Callable[[str], RunsJobT]) -> list[RunsJobT]:
    """Find the jobs to do with this one: itself, then the unfinished ones of trained runs with the same order."""
    found = {job.path: job}
    for other in _others(job.run_id, job_of):
        if other.order == job.order and other.path not in found and other.has_work():
            found[other.path] = other
    return list(found.values())


def label(stage: str, jobs: Sequence[RunsJob]) -> str:
    """Name jobs for a progress bar."""
    return f"{stage} {jobs[0].run_id}" + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")


def _others(run_id: str, job_of: Callable[[str], RunsJobT]) -> Iterator[RunsJobT]:
    for row in planned_alike(run_id):
        if row.id != run_id:
            try:
                if is_as_planned(row.id):
                    yield job_of(row.id)
            except QuorumError:  # an earlier stage of that run has not run yet: its own stage will report it
                continue


@dataclass(frozen=True)
class DecodingJob:
    """One run's decoding: which client's adapter (a file, its digest) decodes which example, and the file of texts.

    `limits`: the source and target tokens to which its examples are cut. `known_by`: digests of the backbone and of the
    code that encodes, which are part of the prefix store's keys.
    """

    run_id: str
    order: GenerateOrder
    tests: list[tuple[str, Entry]]
    limits: tuple[int, int]
    known_by: tuple[str, str]
    adapters: dict[str, Path]
    digests: dict[str, str]
    path: Path

    def predictions(self) -> dict[str, Prediction]:
        """Read example id -> prediction, of all examples that are decoded."""
        if not self.path.is_file():
            return {}
        rows: dict[str, list[Any]] = read_json(self.path, remedy=f"delete {self.path} and run again")
        return {identity: Prediction(*row) for identity, row in rows.items()}

    def save(self, predictions: Mapping[str, Prediction]) -> None:
        """Add predictions to the file."""
        with locked(self.path.with_suffix(".lock")):
            known = self.predictions() | dict(predictions)
            write_json(self.path, {identity: astuple(one) for identity, one in known.items()})

    def missing(self) -> list[tuple[str, Entry]]:
        """List the (client, entry) that are still to be decoded; empty for a run that decodes nothing."""
        if self.order.rule is None or self.order.turns is not None:
            return []
        done = self.predictions()
        return [(client, entry) for client, entry in self.tests if entry.id not in done]

    def unread(self) -> list[tuple[str, Entry]]:
        """List the (client, entry) that the prefix store lacks; empty for a run that does not use the store."""
        return [
            (client, entry)
            for client, entry in self.tests
            if not entry.source and not entry_file(layout.store(), entry.key).is_file()
        ]

    def has_work(self) -> bool:
        """Whether examples are left to decode or prefixes to store."""
        return bool(self.missing() or self.unread())


def decoding_job_of(run_id: str) -> DecodingJob:
    """Build a run's decoding job.

    Raises:
        QuorumError: its order, index or an adapter is missing or damaged.
    """
    order = planned_decoding(run_id)
    encoded = read_encoded(run_id)
    adapters = {client: layout.adapter(run_id, client) for client in encoded.clients}
    return decoding_job(run_id, order, encoded, encoded.tests, adapters)


def planned_decoding(run_id: str) -> GenerateOrder:
    """Read the order of a run's generate stage."""
    return read_order(layout.order("generate", run_id), GenerateOrder)


def decoding_job(
    run_id: str,
    order: GenerateOrder,
    encoded: Encoded,
    tests: Sequence[tuple[str, Entry]],
    adapters: Mapping[str, Path],
) -> DecodingJob:
    """Build the job that decodes these test examples, each with its client's adapter.

    Raises:
        QuorumError: an adapter is missing or damaged.
    """
    digests = {client: digest_of_tensors(path) for client, path in adapters.items()}
    written = [[entry.id, entry.key, digests[client]] for client, entry in tests]
    # A row's query and reference come from the corpora; a summary does not depend on them.
    cause = order.model_dump(mode="json", exclude={"corpora"})
    key = sha256_json([cause, encoded.index["backbone"], written])
    known_by = encoded.index["backbone"], encoded.index["encoding"]
    path = layout.generated() / f"{key}.json"
    return DecodingJob(run_id, order, list(tests), encoded.limits, known_by, dict(adapters), digests, path)


@dataclass(frozen=True)
class ScoringJob:
    """One run's scores, and the file that caches them."""

    run_id: str
    order: EvaluateOrder
    path: Path

    def has_work(self) -> bool:
        """Whether the scores are not cached yet."""
        return not self.path.is_file()


def scoring_job_of(run_id: str) -> ScoringJob:
    """Build a run's scoring job.

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
        raise QuorumError(f"{layout.adapters(run_id)}: has no adapter; run `dvc repro`")
    contents = {path.name: sha256_file(path) for path in [*needed, *adapters]}
    key = sha256_json([order.model_dump(mode="json"), contents])
    return ScoringJob(run_id, order, layout.evaluated() / f"{key}.json")
