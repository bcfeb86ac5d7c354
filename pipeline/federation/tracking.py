"""A federation's run in MLflow, round by round; a projection of what the server knows, and no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from pipeline.errors import QuorumError
from pipeline.federated.history import OnRound, Round
from pipeline.plan.orders import Training
from pipeline.workspace import layout
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import TRAINING_TAG, Store, failures

Result = TypeVar("Result")
LOSSES = ("train_loss", "local_validation_loss", "server_validation_loss", "sent_validation_loss", "steps")


@contextmanager
def followed(run_id: str, training: Training, job: str) -> Iterator[OnRound]:
    """Tell MLflow of every finished round; what goes wrong in it stops no training."""
    store = _told(lambda: _begun(run_id, training, job))

    def on_round(rows: Sequence[Round]) -> None:
        if store is not None and rows:
            _told(lambda: _log(store[0], store[1], rows))

    try:
        yield on_round
    except BaseException:
        if store is not None:
            _told(lambda: store[0].set_status(store[1], "FAILED"))
        raise


def finish(run_id: str, job: str, scores: Mapping[str, Mapping[str, float]]) -> None:
    """The training is over: its server's adapter, its events, and what organisations tell of their test sets."""

    def write() -> None:
        store = Store()
        run, _ = store.run(job, run_id, dict)
        for name, own in scores.items():
            store.metrics(run, {f"{name}/{metric}": value for metric, value in own.items()})
        for path, folder in ((layout.adapter(run_id, "server"), "adapters"), (layout.history(run_id), "history")):
            store.artifact(run, path, folder)
        if layout.events(run_id).is_file():
            store.events(run, read_table(layout.events(run_id)))
            store.artifact(run, layout.events(run_id), "events")
        store.finish(run)

    _told(write)


def _begun(run_id: str, training: Training, job: str) -> tuple[Store, str]:
    store = Store()
    run, complete = store.run(job, run_id, lambda: {TRAINING_TAG: job, "engine": "flower"})
    if not complete:
        store.params(
            run, {**training.hyperparameters, **training.model_dump(mode="json", exclude={"code", "packages"})}
        )
        store.set_status(run, "RUNNING")
    return store, run


def _log(store: Store, run: str, rows: Sequence[Round]) -> None:
    for row in rows:
        values = {name: getattr(row, name) for name in LOSSES} | dict(row.figures)
        present = {f"{row.client}/{name}": float(value) for name, value in values.items() if value is not None}
        store.metrics(run, present, row.round)


def _told(what: Callable[[], Result]) -> Result | None:
    """Do it; what goes wrong is said."""
    try:
        with failures():
            return what()
    except QuorumError as error:
        say(f"track: training goes on without MLflow: {error}")
        return None
