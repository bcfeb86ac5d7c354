"""Logs runs in MLflow, whose store is a projection of files.

A training logs its rounds as they finish. `project` then brings the store in line with the files, run by run and
idempotently, by each run's identity: it adds runs that DVC restored from its cache, rebuilds a deleted store, doubles
nothing, and leaves results of a former plan alone. A parent run is a DVC experiment or the workspace at its commit. A
training that fails or is killed ends as FAILED.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial

from pipeline.federated.history import OnRound, Round, metrics_by_row
from pipeline.plan.orders import ReportOrder, RunRow, planned_run, read_order
from pipeline.runs.index import planned_key, timed_training
from pipeline.runs.result_files import Result, current_commit, identity_of, read_results_of
from pipeline.workspace import layout
from pipeline.workspace.files import is_locked, read_json, sha256_file, sha256_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import PARENT_TAG, TRAINING_TAG, Store, failures

PER_ROUND = (
    *("train_loss", "validation_loss", "local_validation_loss", "server_validation_loss", "sent_validation_loss"),
    *("bytes_down", "bytes_up", "seconds"),
)


@contextmanager
def live(name: str) -> Iterator[Callable[[str], AbstractContextManager[OnRound]]]:
    """Log a run's trainings, a seed each, as their rounds finish, under the MLflow runs that `project` will complete.

    MLflow is in a separate process, which reads `[run id, rows]` a line: it starts in parallel with the first training,
    and its errors stop no training. `[run id, null]` ends a training. If one ends without it, as a killed one does,
    that process sets the status FAILED.
    """
    loggers: list[subprocess.Popen[str]] = []

    def send(run_id: str, rows: Sequence[Round] | None) -> None:
        if not loggers:
            command = [sys.executable, "-m", "pipeline", "log", name]
            # A new session, so that Ctrl-C reaches only the training; the logger then reads the end of its pipe.
            loggers.append(subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True))
        with suppress(OSError):  # the logger has reported why it ended
            print(json.dumps([run_id, rows and [asdict(one) for one in rows]]), file=loggers[0].stdin, flush=True)

    @contextmanager
    def one(run_id: str) -> Iterator[OnRound]:
        # A training calls this first once it has its lock: RUNNING without the lock would mean a dead one.
        yield partial(send, run_id)
        send(run_id, None)

    try:
        yield one
    finally:
        for logger in loggers:
            logger.communicate()  # closes its input, and waits


def log(lines: Iterable[str]) -> None:
    """Log the lines of `live`. Raises QuorumError if the store cannot be opened or written."""
    with failures():
        projection, running = _Projection(Store(), read_order(layout.order("report"), ReportOrder)), dict[str, str]()
        for run_id, rows in map(json.loads, lines):
            if run_id not in running:
                running[run_id] = projection.begin(planned_run(run_id))
            if rows is not None:
                projection.rounds(running[run_id], [Round(**one) for one in rows])
            elif run := running[run_id]:
                projection.store.set_status(run, "FINISHED")
                running[run_id] = ""
        for run in filter(None, running.values()):
            projection.store.set_status(run, "FAILED")


def project() -> None:
    """Bring the store in line with the files, of any task: after a training, a `dvc pull`, or a lost mlflow.db.

    Raises QuorumError if the store cannot be opened or written, or if nothing is planned or computed here.
    """
    order = read_order(layout.order("report"), ReportOrder)
    results, new = read_results_of(order.runs), 0
    recorded = read_json(layout.identities()) if layout.identities().is_file() else {}  # before the first report
    with failures():
        projection = _Projection(Store(), order)
        for row in (row for row in order.runs if row.id in results):
            training = results[row.id]["training"]
            if recorded.get(row.id) != identity_of(row, training):  # metrics of another plan or other data
                continue
            run, complete = projection.run(row, training)
            if not complete:
                projection.complete(run, row, results[row.id])
                new += 1
        projection.page()
    say(f"track: {new} runs brought into {layout.mlflow_uri()}")


@dataclass(frozen=True)
class _Projection:
    """A plan's runs in the store. Runs whose training is dead have the status FAILED."""

    store: Store
    order: ReportOrder

    def __post_init__(self) -> None:
        """Set FAILED for runs with status RUNNING whose training has no lock: their loggers were killed, too."""
        for run, key in self.store.running().items():
            if not is_locked(layout.checkpoint_lock(key)):
                self.store.set_status(run, "FAILED")

    def run(self, row: RunRow, training: str | None) -> tuple[str, bool]:
        """A planned run in MLflow, created if it is missing: (its id, whether it is complete)."""
        own = {"method": row.method, "setting": row.setting, "seed": str(row.seed), "scale": self.order.scale}
        own |= {TRAINING_TAG: training or ""}
        name = f"{row.name}-{row.seed}"
        return self.store.run(identity_of(row, training), name, lambda: own | {PARENT_TAG: self._parent()})

    def begin(self, row: RunRow) -> str:
        """The MLflow run of a training that begins; empty if it is complete."""
        run, complete = self.run(row, planned_key(row.id))
        if complete:
            return ""
        self.store.params(run, _of_training(row))
        self.store.set_status(run, "RUNNING")
        return run

    def _parent(self) -> str:
        """The parent run: the DVC experiment, else the workspace at its commit; finished as soon as it is created."""
        here = f"{layout.workspace().name or 'workspace'} @ {current_commit() or 'no commit'}"
        name, scale = os.environ.get("DVC_EXP_NAME") or here, self.order.scale
        run, complete = self.store.run(sha256_json(["parent", name, scale]), name, lambda: {"scale": scale})
        if not complete:
            self.store.finish(run)
        return run

    def rounds(self, run: str, rows: Iterable[Round]) -> None:
        for number, values in metrics_by_row(rows, PER_ROUND) if run else ():
            self.store.metrics(run, values, number)

    def complete(self, run: str, row: RunRow, result: Result) -> None:
        """Log a run's params, metrics by round, final scores, and those of its models that are here."""
        store = self.store
        sources = {name: about["source"] for name, about in result["source"].items()}
        setting = self.order.settings[row.setting].model_dump(mode="json")
        who = {f"setting.{key}": value for key, value in setting.items() if value is not None}
        store.params(run, self.order.knobs | {"data_source": sources} | who | _of_training(row))
        seconds = {(one["round"], one["client"]): one["seconds"] for one in timed_training(row.id).get("rounds", [])}
        rounds = [Round.of_row(one, row.seed) for one in result["history"]]
        self.rounds(run, [replace(one, seconds=seconds.get((one.round, one.client), math.nan)) for one in rounds])
        if layout.events(row.id).is_file():
            store.events(run, read_table(layout.events(row.id)))
            store.artifact(run, layout.events(row.id), "events")
        for client, figures in read_json(layout.seed_metrics(row.seed)).get(row.name, {}).items():
            plain = {name: one["value"] if isinstance(one, Mapping) else one for name, one in figures.items()}
            store.metrics(run, {f"{client}/{name}": value for name, value in plain.items()})
        if row.training is not None:
            for path in sorted(layout.adapters(row.id).glob("*.safetensors")):
                if len(path.suffixes) == 1:  # the evaluated models, without teachers and others
                    store.artifact(run, path, "adapters")
        store.finish(run)

    def page(self) -> None:
        """Log a run for the page with its figures, once for each version of the page."""
        if not layout.REPORT.is_file():
            return
        identity = sha256_json(["page", sha256_file(layout.REPORT)])
        run, complete = self.store.run(identity, layout.REPORT.stem, lambda: {PARENT_TAG: self._parent()})
        if not complete:
            for path in sorted(layout.FIGURES.glob("*.png")):
                self.store.artifact(run, path, "figures")
            self.store.artifact(run, layout.REPORT, "report")
            self.store.finish(run)


def _of_training(row: RunRow) -> Json:
    """Params that are known before the training: MLflow accepts a param once and refuses another value."""
    training: Json = {} if row.training is None else row.training.model_dump(mode="json", exclude={"learner"})
    hyperparameters: Json = training.pop("hyperparameters", {})
    learner: Json = {} if row.learner is None else row.learner.model_dump(mode="json")
    view: Json = learner.pop("view", {})
    named: Json = {"method": row.method, "setting": row.setting, "seed": row.seed, "evaluate": row.evaluate}
    return named | view | learner | hyperparameters | training
