"""MLflow: the only module that knows it. What is logged there, and when, is `runs.tracking`'s."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace import layout
from pipeline.workspace.files import flush, link, make_folder
from pipeline.workspace.record import Json

EXPERIMENT = "quorum"
KIND_TAG, KIND = "mlflow.experimentKind", "custom_model_development"
"""As what the experiment opens in MLflow's UI: model training, not generative AI."""
IDENTITY_TAG = "quorum.identity"
PARENT_TAG = "mlflow.parentRunId"
COMPLETE_TAG = "quorum.complete"
TRAINING_TAG = "quorum.training"
"""The key of the training behind a run: whoever trains it holds a lock of that name."""


@contextmanager
def failures() -> Iterator[None]:
    """Whatever goes wrong in MLflow and its database, as one line."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        remedy = "close what holds it, or delete it, and run `python -m pipeline track`, which brings it back"
        path = layout.home() / "mlflow.db"
        raise QuorumError(f"{path}: could not be opened or written ({reason}); {remedy}") from None


class Store:
    """The MLflow store at the repository's root."""

    def __init__(self) -> None:
        from mlflow import MlflowClient, set_tracking_uri

        set_tracking_uri(layout.mlflow_uri())
        self._client = MlflowClient(layout.mlflow_uri())
        known = self._client.get_experiment_by_name(EXPERIMENT)
        if known:
            self._experiment = known.experiment_id
            if known.lifecycle_stage == "deleted":
                self._client.restore_experiment(self._experiment)  # with its runs
        else:
            where = layout.mlflow_artifacts().as_uri()
            self._experiment = self._client.create_experiment(EXPERIMENT, where, tags={KIND_TAG: KIND})

    def run(self, identity: str, name: str, tags: Callable[[], dict[str, str]]) -> tuple[str, bool]:
        """The MLflow run of an identity, made with `tags` or restored if it is not there: (id, whether complete)."""
        from mlflow.entities import ViewType

        query = f"tags.`{IDENTITY_TAG}` = '{identity}'"
        found = self._client.search_runs([self._experiment], query, ViewType.ALL, max_results=1)
        if found:
            if found[0].info.lifecycle_stage == "deleted":
                self._client.restore_run(found[0].info.run_id)
            return found[0].info.run_id, found[0].data.tags.get(COMPLETE_TAG) == "true"
        made = self._client.create_run(self._experiment, tags={IDENTITY_TAG: identity, **tags()}, run_name=name)
        return made.info.run_id, False

    def running(self) -> dict[str, str]:
        """Run -> key of its training, of those that are said to be going on."""
        found = self._client.search_runs([self._experiment], "attributes.status = 'RUNNING'", max_results=1000)
        return {run.info.run_id: run.data.tags.get(TRAINING_TAG, "") for run in found}

    def set_status(self, run: str, status: str) -> None:
        """`RUNNING`, or how it ended."""
        if status == "RUNNING":
            self._client.update_run(run, status)
        else:
            self._client.set_terminated(run, status)

    def params(self, run: str, values: Json) -> None:
        """Log parameters; those of nested values get dotted names."""
        from mlflow.entities import Param

        self._client.log_batch(run, params=[Param(key, str(value)) for key, value in _flat(values)])

    def metrics(self, run: str, values: Mapping[str, float], step: int = 0) -> None:
        """Log metrics at a step, a round as a rule; values that are not a number are skipped."""
        from mlflow.entities import Metric

        # A round's place on the time axis is its number: the projection gives the same store every time.
        known = {key: float(value) for key, value in values.items() if not math.isnan(float(value))}
        self._client.log_batch(run, metrics=[Metric(key, value, step, step) for key, value in known.items()])

    def events(self, run: str, rows: Iterable[Mapping[str, str]]) -> None:
        """How often something went wrong in each round, by kind: rows of events.csv."""
        for (number, kind), count in Counter((int(row["round"]), row["kind"]) for row in rows).items():
            self.metrics(run, {f"events/{kind}": count}, number)

    def artifact(self, run: str, path: Path, folder: str) -> None:
        """Put a file under a run, by a hard link, since adapters are large."""
        target = layout.mlflow_artifacts() / run / "artifacts" / folder / path.name
        make_folder(target.parent)
        target.unlink(missing_ok=True)
        link(path, target)
        flush(target.parent)

    def finish(self, run: str) -> None:
        """Mark a run as complete and finished."""
        self._client.set_tag(run, COMPLETE_TAG, "true")
        self._client.set_terminated(run)


def _flat(values: Json, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Dotted key -> value."""
    for key, value in values.items():
        yield from _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
