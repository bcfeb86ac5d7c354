"""Logs runs in MLflow, whose store is a projection of files.

A training logs its rounds as they finish. `project` then brings the store in line with the files, run by run and
idempotently, by each run's identity: it adds runs that DVC restored from its cache, rebuilds a deleted store, doubles
nothing, and leaves results of a former plan alone. A parent run is a DVC experiment or the workspace at its commit. A
training that fails or is killed ends as FAILED.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import chain
from typing import Any

from pipeline.errors import QuorumError
from pipeline.federated.history import OnRound, Round
from pipeline.plan.orders import EncodeOrder, MainOrder, ReportOrder, RunRow, read_order
from pipeline.runs.identity import identity_of, notes_behind, recorded_identities
from pipeline.runs.index import planned_key
from pipeline.runs.result_files import current_commit
from pipeline.runs.trained import read_history, timed_training
from pipeline.workspace import layout
from pipeline.workspace.files import is_locked, read_json, sha256_file, sha256_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table
from pipeline.workspace.tracking import PARENT_TAG, TRAINING_TAG, Store, failures

PER_ROUND = (
    "train_loss",
    "validation_loss",
    "local_validation_loss",
    "server_validation_loss",
    "sent_validation_loss",
    "bytes_down",
    "bytes_up",
    "seconds",
)
NOT_KNOBS = ("code", "packages", "manifests", "limits", "left_out", "own", "query", "corpora", "encoding")
FINISHED = "finished"


@contextmanager
def live(run_id: str) -> Iterator[OnRound]:
    """Log a training's rounds as they finish, under the run that `project` will complete.

    MLflow runs in a separate process: it starts in parallel with the training, and its errors stop no training. If the
    training ends without a message, as a killed one does, that process sets the status FAILED.
    """
    _, row = _plan(run_id)
    if row.training is None:  # no round will be logged
        yield lambda rows: None
        return
    command = [sys.executable, "-m", "pipeline", "log", run_id]
    # A new session, so that Ctrl-C reaches only the training; the logger then reads the end of its pipe.
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True) as logger:

        def send(line: str) -> None:
            assert logger.stdin is not None
            with suppress(OSError):  # the logger has reported why it ended
                logger.stdin.write(line + "\n")
                logger.stdin.flush()

        try:
            yield lambda rows: send(json.dumps([asdict(row) for row in rows]))
            send(json.dumps(FINISHED))
        finally:
            assert logger.stdin is not None
            with suppress(OSError):  # closing flushes again what a dead logger left unread
                logger.stdin.close()


def log(run_id: str, lines: Iterable[str]) -> None:
    """Log the messages of `live`: one line of JSON for each round, and one at the end of the training.

    Raises:
        QuorumError: the MLflow store cannot be opened or written.
    """
    order, row = _plan(run_id)
    messages = iter(lines)
    with failures():
        store = Store()
        _fail_dead_trainings(store)
        # A training sends its first message once it has its lock: RUNNING without the lock would mean a dead one.
        first = next(messages, None)
        run, complete = _mlflow_run(store, order, row)
        if complete:
            return
        store.params(run, _of_training(row))
        store.set_status(run, "RUNNING")
        for line in chain([] if first is None else [first], messages):
            message = json.loads(line)
            if message == FINISHED:
                store.set_status(run, "FINISHED")
                return
            for one in message:
                _log_round(store, run, Round(**one))
        store.set_status(run, "FAILED")


def _fail_dead_trainings(store: Store) -> None:
    """Set FAILED for runs with status RUNNING whose training has no lock: their loggers were killed, too."""
    for run, key in store.running().items():
        if not is_locked(layout.checkpoint_lock(key)):
            store.set_status(run, "FAILED")


def project() -> None:
    """Bring the store in line with the files.

    Raises:
        QuorumError: the store cannot be opened or written.
    """
    if not layout.order("report").is_file():
        say("track: no run of meetings is planned here; `dvc repro` logs runs on labelled texts")
        return
    order = read_order(layout.order("report"), ReportOrder)
    new = 0
    with failures():
        store = Store()
        _fail_dead_trainings(store)
        recorded = recorded_identities(layout.MAIN) | recorded_identities(layout.MORE)
        for row in (row for row in order.runs if row.id in recorded and _is_here(row)):
            # A result of another plan or other data is no result of this plan.
            if recorded[row.id] != identity_of(row):
                continue
            run, complete = _mlflow_run(store, order, row)
            if not complete:
                scores = read_json(layout.seed_metrics(layout.group_of(row.id), row.seed))[row.name]
                _project_run(store, run, row, scores)
                new += 1
        _project_pages(store, order)
    say(f"track: {new} runs brought into {layout.mlflow_uri()}")


def _is_here(row: RunRow) -> bool:
    """Whether a run was computed here: a clone has only the metrics of other runs, which are in git."""
    behind = [layout.encoded_index(row.id), layout.history(row.id), *notes_behind(row)]
    return all(path.is_file() for path in behind)


def _project_run(store: Store, run: str, row: RunRow, scores: Mapping[str, Mapping[str, Any]]) -> None:
    """Log a run's resolved params, metrics by round, final scores and best adapters."""
    store.params(run, _resolved(row))
    for one in read_history(row.id, row.seed):
        _log_round(store, run, one)
    if layout.events(row.id).is_file():
        store.events(run, read_table(layout.events(row.id)))
        store.artifact(run, layout.events(row.id), "events")
    for timed in timed_training(row.id).get("rounds", []):
        store.metrics(run, {f"{timed['client']}/seconds": timed["seconds"]}, int(timed["round"]))
    for client, figures in scores.items():
        store.metrics(run, {f"{client}/{name}": value for name, value in _values(figures).items()})
        path = layout.adapter(row.id, client)
        if path.is_file() and row.training is not None:
            store.artifact(run, path, "adapters")
    store.finish(run)


def _values(figures: Mapping[str, Any]) -> dict[str, float]:
    """A client's figures without their intervals."""
    return {name: figure["value"] if isinstance(figure, Mapping) else figure for name, figure in figures.items()}


def _resolved(row: RunRow) -> dict[str, Any]:
    """Every knob behind a run, from the orders of its stages, by its name in params.yaml."""
    knobs: dict[str, Any] = {"method": row.method, "setting": row.setting, "seed": row.seed}
    knobs |= {f"data_source.{path.parent.name}": read_json(path)["source"]["source"] for path in notes_behind(row)}
    encode = read_order(layout.order("encode", layout.group_of(row.id)), EncodeOrder)
    knobs["source_tokens"], knobs["target_tokens"] = encode.limits[encode.manifests[row.id]]
    for path in (
        layout.order("backbone"),
        layout.order("prepare", "qmsum"),
        layout.order("encode", layout.group_of(row.id)),
        layout.order("generate", row.id),
        layout.order("evaluate", row.id),
    ):
        order = read_json(path)
        order |= order.pop("rule", None) or {}
        knobs |= {name: value for name, value in order.items() if name not in NOT_KNOBS}
    return knobs | _of_training(row) | {"evaluate": row.evaluate}


def _of_training(row: RunRow) -> dict[str, Any]:
    """Params that are known before the training: MLflow accepts a param once and refuses another value."""
    training = {} if row.training is None else row.training.model_dump(mode="json")
    hyperparameters: dict[str, Any] = training.pop("hyperparameters", {})
    return {"method": row.method} | hyperparameters | training


def _project_pages(store: Store, order: MainOrder) -> None:
    """Log a run for each page with its figures, once for each version of the page."""
    own = layout.MAIN if layout.order("main").is_file() else layout.MORE  # an experiment's page has its studies
    pages = ((own, layout.REPORT), (layout.MORE, layout.PAPER_REPORT))
    for group, page in ((group, page) for group, page in pages if page.is_file()):
        identity = sha256_json(["page", sha256_file(page)])
        known, complete = store.run(identity, page.stem, lambda: {PARENT_TAG: _parent(store, order)})
        if not complete:
            for path in sorted(layout.figures(group).glob("*.png")):
                store.artifact(known, path, "figures")
            store.artifact(known, page, "report")
            store.finish(known)


def _plan(run_id: str) -> tuple[MainOrder, RunRow]:
    order = read_order(layout.order("report"), ReportOrder)
    for row in order.runs:
        if row.id == run_id:
            return order, row
    known = ", ".join(row.id for row in order.runs)
    raise QuorumError(f"run {run_id!r} is not in params.yaml; there are {known}")


def _mlflow_run(store: Store, order: MainOrder, row: RunRow) -> tuple[str, bool]:
    """A planned run in MLflow, created if it is missing: (its id, whether it is complete)."""

    def tags() -> dict[str, str]:
        own = {"method": row.method, "setting": row.setting, "seed": str(row.seed), "scale": order.scale}
        return own | {TRAINING_TAG: planned_key(row.id) or "", PARENT_TAG: _parent(store, order)}

    return store.run(identity_of(row), f"{row.name}-{row.seed}", tags)


def _parent(store: Store, order: MainOrder) -> str:
    """The parent run: the DVC experiment, else the workspace at its commit; finished as soon as it is created."""
    name = (
        os.environ.get("DVC_EXP_NAME")
        or f"{layout.workspace().name or 'workspace'} @ {current_commit() or 'no commit'}"
    )
    run, complete = store.run(sha256_json(["parent", name, order.scale]), name, lambda: {"scale": order.scale})
    if not complete:
        store.finish(run)
    return run


def _log_round(store: Store, run: str, row: Round) -> None:
    values = {name: getattr(row, name) for name in PER_ROUND} | dict(row.figures)
    present = {f"{row.client}/{name}": float(value) for name, value in values.items() if value is not None}
    store.metrics(run, present, row.round)
