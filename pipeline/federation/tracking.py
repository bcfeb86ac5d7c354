"""Log a federation's run to MLflow, round by round, from what the server knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from pipeline.errors import QuorumError
from pipeline.federated.history import OnRound, Round, metrics_by_row
from pipeline.plan.learner import Training
from pipeline.workspace import layout
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import TRAINING_TAG, Store, failures

Result = TypeVar("Result")
LOSSES = ("train_loss", "local_validation_loss", "server_validation_loss", "sent_validation_loss", "steps")


@contextmanager
def logged(run_id: str, training: Training, job: str) -> Iterator[OnRound]:
    """Open the run in MLflow; yield a callback that logs a finished round. An exception marks the run FAILED.

    A failure of MLflow is printed and does not stop the training.
    """
    run = _attempt(lambda: _open(run_id, training, job))

    def on_round(rows: Sequence[Round]) -> None:
        if run is not None:
            _attempt(lambda: _log(*run, rows))

    try:
        yield on_round
    except BaseException:
        if run is not None:
            _attempt(lambda: run[0].set_status(run[1], "FAILED"))
        raise


def finish(run_id: str, job: str, scores: Mapping[str, Mapping[str, float]]) -> None:
    """Log the server's adapter, the history, the events and each organisation's reported scores; close the run."""

    def write() -> None:
        store = Store()
        run, _ = store.run(job, run_id, dict)
        for name, means in scores.items():
            store.metrics(run, {f"{name}/{metric}": value for metric, value in means.items()})
        for path, folder in ((layout.adapter(run_id, "server"), "adapters"), (layout.history(run_id), "history")):
            store.artifact(run, path, folder)
        if layout.events(run_id).is_file():
            store.events(run, read_table(layout.events(run_id)))
            store.artifact(run, layout.events(run_id), "events")
        store.finish(run)

    _attempt(write)


def _open(run_id: str, training: Training, job: str) -> tuple[Store, str]:
    """The store, and the id of the job's run in it. A run that is complete is left alone."""
    store = Store()
    run, complete = store.run(job, run_id, lambda: {TRAINING_TAG: job, "engine": "flower"})
    if not complete:
        store.params(
            run, {**training.hyperparameters, **training.model_dump(mode="json", exclude={"code", "packages"})}
        )
        store.set_status(run, "RUNNING")
    return store, run


def _log(store: Store, run: str, rows: Sequence[Round]) -> None:
    """Log one round's losses and figures, by client."""
    for number, values in metrics_by_row(rows, LOSSES):
        store.metrics(run, values, number)


def _attempt(action: Callable[[], Result]) -> Result | None:
    """Run an action on MLflow. Print its failure and return None."""
    try:
        with failures():
            return action()
    except QuorumError as error:
        say(f"track: training goes on without MLflow: {error}")
        return None
