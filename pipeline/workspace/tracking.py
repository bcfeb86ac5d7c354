"""MLflow: the only module that knows it. The store is a projection of files.

A training logs its rounds as they finish; `project` then brings the store in line with what is on disk, run by run and
idempotently, by the run's identity: runs that DVC restored from its cache appear, a deleted store comes back, nothing
doubles, and results of a former plan are left alone. A parent run is an experiment of DVC's, else the workspace at its
commit.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.errors import QuorumError
from pipeline.federated.algorithms.registry import ZEROSHOT
from pipeline.federated.history import read_history
from pipeline.plan.orders import EncodeSpec, MainSpec, ReportSpec, RunRow, read_spec
from pipeline.runs.identity import identity_of, notes_behind, recorded_identities
from pipeline.runs.trained import planned_key
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_file, sha256_json
from pipeline.workspace.progress import OnRound, say

EXPERIMENT = "quorum"
SPEC_TAG = "quorum.spec"
PARENT_TAG = "mlflow.parentRunId"
COMPLETE_TAG = "quorum.complete"
PER_ROUND = (
    "train_loss",
    "validation_loss",
    "local_validation_loss",
    "server_validation_loss",
    "teacher_validation_loss",
    "share_distilled",
    "teacher_entropy",
    "bytes_down",
    "bytes_up",
    "seconds",
)


class Store:
    """The MLflow store at the repository's root."""

    def __init__(self) -> None:
        from mlflow import MlflowClient, set_tracking_uri
        from mlflow.exceptions import MlflowException

        set_tracking_uri(layout.mlflow_uri())
        try:
            self._client = MlflowClient(layout.mlflow_uri())
            known = self._client.get_experiment_by_name(EXPERIMENT)
        except MlflowException as error:
            reason = " ".join(str(error).split())[:160]
            raise QuorumError(
                f"{layout.home() / 'mlflow.db'}: cannot be opened ({reason}); delete it and run "
                "`python -m pipeline track`, which brings it back"
            ) from None
        if known is None:
            where = layout.mlflow_artifacts().as_uri()
            self._experiment = self._client.create_experiment(EXPERIMENT, artifact_location=where)
        else:
            self._experiment = known.experiment_id

    def run(self, identity: str, name: str, tags: Callable[[], dict[str, str]]) -> tuple[str, bool]:
        """The MLflow run of an identity, made with `tags` if it is not there: (its id, whether it is complete)."""
        found = self._client.search_runs([self._experiment], f"tags.`{SPEC_TAG}` = '{identity}'", max_results=1)
        if found:
            return found[0].info.run_id, found[0].data.tags.get(COMPLETE_TAG) == "true"
        made = self._client.create_run(self._experiment, tags={SPEC_TAG: identity, **tags()}, run_name=name)
        return made.info.run_id, False

    def params(self, run: str, values: dict[str, Any]) -> None:
        from mlflow.entities import Param

        flat = [Param(key, str(value)) for key, value in _flat(values).items()]
        self._client.log_batch(run, params=flat)

    def metrics(self, run: str, values: dict[str, float], step: int = 0) -> None:
        from mlflow.entities import Metric

        # A round's place on the time axis is its number: the projection gives the same store every time.
        finite = {key: float(v) for key, v in values.items() if not math.isnan(float(v))}
        self._client.log_batch(run, metrics=[Metric(key, v, step, step) for key, v in finite.items()])

    def artifact(self, run: str, path: Path, folder: str) -> None:
        """Put a file under a run, by a hard link where the disk can: adapters are large, and lie there already."""
        target = layout.mlflow_artifacts() / run / "artifacts" / folder / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            os.link(path, target)
        except OSError:
            self._client.log_artifact(run, str(path), folder)

    def finish(self, run: str) -> None:
        self._client.set_tag(run, COMPLETE_TAG, "true")
        self._client.set_terminated(run)


@contextmanager
def live(run_id: str) -> Iterator[OnRound]:
    """Log a training's rounds as they finish, under the run that `project` will complete.

    A store that fails does not stop a training: `project` mends it later.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    spec, row = _plan(run_id)
    try:
        store = Store()
        run, complete = _known(store, spec, row)
        if not complete:
            store.params(run, _of_training(row))
    except (QuorumError, MlflowException, SQLAlchemyError, OSError) as error:
        say(f"track: MLflow is out of order ({' '.join(str(error).split())[:120]}); training goes on without it")
        complete = True

    def on_round(rows: list[dict[str, Any]]) -> None:
        if complete:
            return
        try:
            for line in rows:
                _log_round(store, run, line)
        except (MlflowException, SQLAlchemyError, OSError) as error:
            say(f"track: a round was not logged ({' '.join(str(error).split())[:120]})")

    yield on_round


def project() -> None:
    """Make the store say what the files say.

    Raises:
        QuorumError: the store cannot be opened or written.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        _project()
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise QuorumError(
            f"{layout.home() / 'mlflow.db'}: could not be written ({reason}); close what holds it, or delete it, and "
            "run `python -m pipeline track`"
        ) from None


def _project() -> None:
    spec = read_spec(layout.stage_spec("report"), ReportSpec)
    store = Store()
    new = 0
    recorded = recorded_identities(layout.MAIN) | recorded_identities(layout.MORE)
    for row in (row for row in spec.runs if row.id in recorded and _is_here(row)):
        # What was made of another plan or other data is no result of this one.
        if recorded[row.id] != identity_of(row):
            continue
        run, complete = _known(store, spec, row)
        if not complete:
            scores = read_json(layout.seed_metrics(layout.group_of(row.id), row.seed))[row.name]
            _project_run(store, run, row, scores)
            new += 1
    _project_figures(store, spec)
    say(f"track: {new} runs brought into {layout.mlflow_uri()}; `make ui` shows them")


def _is_here(row: RunRow) -> bool:
    """Whether a run was made here: of others a clone has the metrics alone, which git holds."""
    behind = [layout.encoded_index(row.id), layout.history(row.id), *notes_behind(row)]
    return all(path.is_file() for path in behind)


def _project_run(store: Store, run: str, row: RunRow, scores: dict[str, dict[str, float]]) -> None:
    """A run's resolved params, per-round metrics, final scores and best adapters."""
    store.params(run, _resolved(row))
    for one in read_history(row.id, row.seed):
        _log_round(store, run, asdict(one))
    for timed in _timed_rounds(row):
        store.metrics(run, {f"{timed['client']}/seconds": timed["seconds"]}, int(timed["round"]))
    for client, figures in scores.items():
        store.metrics(run, {f"{client}/{name}": value for name, value in figures.items()})
        path = layout.adapter(row.id, client)
        if path.is_file() and row.method != ZEROSHOT:
            store.artifact(run, path, "adapters")
    store.finish(run)


def _timed_rounds(row: RunRow) -> list[dict[str, Any]]:
    """The seconds of each round, if what was timed last is this training: copies of the workspace share the note."""
    note = layout.timing("train", row.id)
    timed = read_json(note) if note.is_file() else {}
    rounds: list[dict[str, Any]] = timed["rounds"] if timed and timed.get("training") == planned_key(row.id) else []
    return rounds


def _resolved(row: RunRow) -> dict[str, Any]:
    """Every knob behind a run, from the specs of its stages, by its name in params.yaml."""
    knobs: dict[str, Any] = {"method": row.method, "setting": row.setting, "seed": row.seed}
    knobs |= {f"data_source.{path.parent.name}": read_json(path)["source"]["source"] for path in notes_behind(row)}
    encode = read_spec(layout.stage_spec("encode", layout.group_of(row.id)), EncodeSpec)
    knobs["source_tokens"], knobs["target_tokens"] = encode.limits[encode.manifests[row.id]]
    for path in (
        layout.stage_spec("backbone"),
        layout.stage_spec("prepare", "qmsum"),
        layout.stage_spec("encode", layout.group_of(row.id)),
        layout.stage_spec("generate", row.id),
        layout.stage_spec("evaluate", row.id),
    ):
        spec = read_json(path)
        spec |= spec.pop("rule", None) or {}
        knobs |= {k: v for k, v in spec.items() if k not in ("code", "manifests", "limits", "left_out", "own", "query")}
    return knobs | _of_training(row) | {"evaluate": row.evaluate}


def _of_training(row: RunRow) -> dict[str, Any]:
    """What the identity of a run fixes before it is trained: MLflow takes a param once and refuses another value."""
    training = {} if row.training is None else row.training.model_dump(mode="json")
    hyperparameters: dict[str, Any] = training.pop("hyperparameters", {})
    return {"method": row.method} | hyperparameters | training


def _project_figures(store: Store, spec: MainSpec) -> None:
    """The parent run holds each page and its figures, once for each set of results."""
    pages = ((layout.MAIN, layout.REPORT), (layout.MORE, layout.PAPER_REPORT))
    for group, page in ((group, page) for group, page in pages if page.is_file()):
        identity = sha256_json(["page", sha256_file(page)])
        known, complete = store.run(identity, page.stem, lambda: {PARENT_TAG: _parent(store, spec)})
        if not complete:
            for path in sorted(layout.figures(group).glob("*.png")):
                store.artifact(known, path, "figures")
            store.artifact(known, page, "report")
            store.finish(known)


def _plan(run_id: str) -> tuple[MainSpec, RunRow]:
    spec = read_spec(layout.stage_spec("report"), ReportSpec)
    for row in spec.runs:
        if row.id == run_id:
            return spec, row
    known = ", ".join(row.id for row in spec.runs)
    raise QuorumError(f"run {run_id!r} is not in params.yaml; there are {known}")


def _known(store: Store, spec: MainSpec, row: RunRow) -> tuple[str, bool]:
    """The MLflow run of one of ours, made if it is not there: (its id, whether it is complete)."""

    def tags() -> dict[str, str]:
        own = {"method": row.method, "setting": row.setting, "seed": str(row.seed), "scale": spec.scale}
        return own | {PARENT_TAG: _parent(store, spec)}

    return store.run(identity_of(row), f"{row.name}-{row.seed}", tags)


def _parent(store: Store, spec: MainSpec) -> str:
    """DVC's experiment, else the workspace at its commit; it is a heading, so it is finished once it is there."""
    name = os.environ.get("DVC_EXP_NAME") or f"workspace @ {_commit()}"
    run, complete = store.run(sha256_json(["parent", name, spec.scale]), name, lambda: {"scale": spec.scale})
    if not complete:
        store.finish(run)
    return run


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


def _log_round(store: Store, run: str, line: dict[str, Any]) -> None:
    values = {name: line.get(name) for name in PER_ROUND}
    present = {f"{line['client']}/{name}": float(v) for name, v in values.items() if v not in (None, "")}
    store.metrics(run, present, int(line["round"]))


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
