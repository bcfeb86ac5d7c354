"""What a run's models predict on test examples, and how the first run of several decodes for all of them.

Starting Python, loading the backbone and reading a test set cost as much for one run as for all. So the first run's
stage decodes for all and caches the texts in work/, under a hash of what they depend on; the other stages find them
there. There is still one DVC stage for each run, with its own dependencies.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from pipeline.clients.skews import SERVER
from pipeline.errors import QuorumError
from pipeline.model.entry import Entry, entry_file
from pipeline.model.tensor_file import digest_of_tensors, has_checksum
from pipeline.plan.orders import PredictOrder, TrainOrder, planned_runs, read_order
from pipeline.runs.index import Index, planned_key, read_index, read_manifest, trained_key
from pipeline.tasks.task import Prediction
from pipeline.workspace import layout
from pipeline.workspace.files import locked, read_json, sha256_json, write_json
from pipeline.workspace.record import Json

EVALUATED, BEST = "", "best"
"""Which of a client's models predict: the evaluated one, and that of its best round where the last is evaluated."""


@dataclass(frozen=True)
class Job:
    """The predictions of one of a run's models for each client, at one seed.

    Attributes:
        which: see `EVALUATED`.
        tests: (client, entry) of each test example.
        adapters: client -> the file of its model.
        digests: client -> the hash of the model's tensors.
        path: the file that caches decoded texts. Two jobs with one path are one.
    """

    run_id: str
    which: str
    order: PredictOrder
    index: Index
    tests: Sequence[tuple[str, Entry]]
    adapters: Mapping[str, Path]
    digests: Mapping[str, str]
    path: Path

    @property
    def models(self) -> dict[str, Path]:
        """The hash of a model's tensors -> its file."""
        return {self.digests[client]: path for client, path in self.adapters.items()}

    def predictions(self) -> dict[str, Prediction]:
        """Example -> its text, of all that are decoded."""
        rows: Json = read_json(self.path, f"delete {self.path} and run again") if self.path.is_file() else {}
        return {identity: Prediction(*row) for identity, row in rows.items()}

    def save(self, predictions: Mapping[str, Prediction]) -> None:
        """Add texts to the file."""
        with locked(self.path.with_suffix(".lock")):
            known = self.predictions() | dict(predictions)
            write_json(self.path, {identity: astuple(one) for identity, one in known.items()})

    def missing(self) -> list[Entry]:
        """The examples that are still to be decoded; none for a run that decodes nothing."""
        done = self.predictions()
        return [entry for _, entry in self.tests if self.order.rule is not None and entry.id not in done]

    def unread(self) -> list[Entry]:
        """The examples that the store lacks; none for a run that does not use it."""
        store = layout.store()
        return [entry for _, entry in self.tests if not entry.source and not entry_file(store, entry.key).is_file()]


def steps_of(jobs: Sequence[Job]) -> int:
    """Count the summaries that are still to be decoded and the prefixes that are still to be stored."""
    return sum(len(job.missing()) for job in jobs) + len({entry.key for job in jobs for entry in job.unread()})


def model_file(run_id: str, client: str, which: str = EVALUATED) -> Path:
    """The file of a client's model: its own, else the server's; that of its best round is the evaluated one if missing.

    A file that its training saved is named also if it is gone, so that reading it fails.
    Raises QuorumError if the run has none.
    """
    for path in (layout.adapter(run_id, client, which), layout.adapter(run_id, client), layout.adapter(run_id, SERVER)):
        if path.is_file() or has_checksum(run_id, path):
            return path
    stage = f"train@{run_id.split('/')[0]}"
    raise QuorumError(f"{layout.adapters(run_id)}: has no model of {client}; run `dvc repro {stage}`")


def jobs_of(run_id: str) -> list[Job]:
    """A run's jobs at one seed: of the evaluated models, and of the best rounds' where the last is evaluated.

    Where clients' own models are evaluated on the server's examples, each of these models has a job.
    """
    name, seed = run_id.rsplit("/", 1)
    order = read_order(layout.order("predict", name), PredictOrder)
    trains = read_order(layout.order("train", name), TrainOrder)
    index, manifest = read_index(order.setting, name), read_manifest(order.setting, int(seed))
    tests = [(client, index.entries[i][0]) for client, own in manifest.items() for i in own["test"]]
    kinds = [client for client in manifest if layout.adapter(run_id, SERVER, client).is_file()]
    kinds = kinds or ([EVALUATED, BEST] if trains.evaluated == "last" and trains.training is not None else [EVALUATED])
    return [job_of(run_id, which, order, index, tests) for which in kinds]


def job_of(run_id: str, which: str, order: PredictOrder, index: Index, tests: Sequence[tuple[str, Entry]]) -> Job:
    """A job on given test examples. Raises QuorumError if a model is missing or damaged."""
    adapters = {client: model_file(run_id, client, which) for client, _ in tests}
    by_file = {path: digest_of_tensors(path) for path in set(adapters.values())}
    digests = {client: by_file[path] for client, path in adapters.items()}
    written = [[entry.id, entry.key, digests[client]] for client, entry in tests]
    cause = order.model_dump(mode="json", include={"code", "packages", "task", "rule"})
    path = layout.generated() / f"{sha256_json([cause, index.digest, written])}.json"
    return Job(run_id, which, order, index, tests, adapters, digests, path)


def sharing_with(jobs: Sequence[Job]) -> list[Job]:
    """The jobs to decode with these: themselves, then the unfinished ones of trained runs that decode alike."""
    first, alike = jobs[0].order, {"code", "packages", "task", "data", "rule"}
    assert first.learner is not None
    found = {job.path: job for job in jobs}
    for row in planned_runs():
        if row.left_out or row.learner is None or row.learner.reader != first.learner.reader:
            continue
        with suppress(QuorumError):  # an earlier stage of that run has not run yet: its own stage will report it
            for job in jobs_of(row.id) if trained_key(row.id) == planned_key(row.id) else []:
                if job.order.model_dump(include=alike) == first.model_dump(include=alike) and steps_of([job]):
                    found.setdefault(job.path, job)
    return list(found.values())
