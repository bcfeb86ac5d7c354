"""The models of every round, which audits read: of which training they are, whether all are here, where each lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.history import best_rounds
from pipeline.plan.orders import RunRow
from pipeline.runs.audits import ANEW, KNOBS, read_audits, runs_of_audits
from pipeline.runs.histories import read_history
from pipeline.runs.index import planned_key, read_encoded
from pipeline.runs.kept import stage_of
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.training import POOLED, bind
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.tables import read_table


@dataclass(frozen=True)
class RoundModels:
    """A client's best round by loss, and the file of each round's model that its row would be about."""

    best: int
    files: dict[int, Path]


def models_of(row: RunRow) -> dict[str, RoundModels]:
    """Client -> its models.

    Raises:
        QuorumError: the run is not trained on this machine, or models of its rounds are not here.
    """
    key, clients = trained_as(row), read_encoded(row.id).clients
    history = read_history(row.id, row.seed)
    assert row.training is not None
    pooled = bind(row.training).pooled
    found = {}
    for client in clients:
        owner = "server" if row.evaluate == "server" else POOLED if pooled else client
        (best,) = best_rounds(history, client)
        files = {one.round: layout.round_adapter(key, one.round, owner) for one in history if one.client == client}
        if lost := [path for path in files.values() if not path.is_file()]:
            raise QuorumError(f"{lost[0]}: is not on this machine; run `make audit`, which trains {row.id} again")
        found[client] = RoundModels(best, files)
    return found


def trained_as(row: RunRow) -> str:
    """The key of the training behind a run's models: the planned one, or that of its kept result.

    A result stays one where code has changed since, and so do the models behind it.

    Raises:
        QuorumError: the models are missing, or another plan's: the audit would be filed under the run as planned.
    """
    path = layout.trained_as(row.id)
    key = str(read_json(path, remedy=f"run `dvc repro {_training_of(row)}` on this machine")["training"])
    kept = read_json(layout.kept(row.id))["history"] if layout.kept(row.id).is_file() else None
    if key != planned_key(row.id) and read_table(layout.history(row.id)) != kept:
        raise QuorumError(
            f"{path}: is neither the planned training nor the kept one; run `dvc repro {_training_of(row)}`"
        )
    return key


def to_train(*, again: bool = False) -> list[str]:
    """DVC's names of the trainings that `make audit` still needs here, one a training; none where all audits are kept.

    Args:
        again: forget that they were trained, so that `dvc repro --force` trains them, and keeps every round's models.
    """
    if set(read_audits()) == set(KNOBS):
        return []
    wanted: dict[str, RunRow] = {}
    for row in runs_of_audits()[ANEW]:
        if not _is_here(row):
            wanted.setdefault(_key_of(row), row)
    if again:
        remove_checkpoints([layout.checkpoints() / key for key in wanted if _has_lost_rounds(key)])
    return [_training_of(row) for row in wanted.values()]


def _is_here(row: RunRow) -> bool:
    try:
        models_of(row)
    except QuorumError:
        return False
    return True


def _key_of(row: RunRow) -> str:
    """Its training, by which two rows may be one; unknown before its examples are encoded."""
    return (planned_key(row.id) if layout.encoded_index(row.id).is_file() else None) or row.id


def _has_lost_rounds(key: str) -> bool:
    """Whether a checkpoint has rounds whose models are not here; one that keeps them all is gone on with."""
    done = load_progress(layout.checkpoints() / key, key)
    rounds = range(1, done[0].round + 1) if done else ()
    return any(not layout.round_adapter(key, number, "server").is_file() for number in rounds)


def _training_of(row: RunRow) -> str:
    return stage_of(row).replace("evaluate", "train", 1)
