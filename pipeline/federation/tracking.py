"""Log a federation's run to MLflow, round by round, from what the server knows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pipeline.errors import QuorumError
from pipeline.federated.history import OnRound, Round, metrics_by_row
from pipeline.plan.learner import Training
from pipeline.workspace import layout
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import TRAINING_TAG, Store, failures

LOSSES = ("train_loss", "local_validation_loss", "server_validation_loss", "sent_validation_loss", "steps")


@contextmanager
def logged(run_id: str, training: Training, job: str) -> Iterator[OnRound]:
    """Open the run in MLflow; yield a callback that logs a finished round. An exception marks the run FAILED.

    A failure of MLflow is printed and does not stop the training. A run that is complete keeps its parameters.
    """
    run = ""
    with _tolerated():
        store = Store()
        run, complete = store.run(job, run_id, lambda: {TRAINING_TAG: job, "engine": "flower"})
        if not complete:
            knobs = training.model_dump(mode="json", exclude={"code", "packages"})
            store.params(run, {**training.hyperparameters, **knobs})
            store.set_status(run, "RUNNING")

    def on_round(rows: Sequence[Round]) -> None:
        with _tolerated():
            for number, values in metrics_by_row(rows, LOSSES) if run else ():
                store.metrics(run, values, number)

    try:
        yield on_round
    except BaseException:
        with _tolerated():
            if run:
                store.set_status(run, "FAILED")
        raise


def finish(run_id: str, job: str, scores: Mapping[str, Mapping[str, float]]) -> None:
    """Log the server's adapter, the history, the events and each organisation's reported scores; close the run."""
    with _tolerated():
        store = Store()
        run, _ = store.run(job, run_id, dict)
        for name, means in scores.items():
            store.metrics(run, {f"{name}/{metric}": value for metric, value in means.items()})
        store.artifact(run, layout.adapter(run_id, "server"), "adapters")
        store.artifact(run, layout.history(run_id), "history")
        if layout.events(run_id).is_file():
            store.events(run, read_table(layout.events(run_id)))
            store.artifact(run, layout.events(run_id), "events")
        store.finish(run)


@contextmanager
def _tolerated() -> Iterator[None]:
    """Print a failure of MLflow, and go on behind the block."""
    try:
        with failures():
            yield
    except QuorumError as error:
        say(f"track: training goes on without MLflow: {error}")
