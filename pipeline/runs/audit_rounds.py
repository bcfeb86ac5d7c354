"""The models of every round, which audits read: of which training they are, whether all are here, where each lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.history import best_rounds
from pipeline.plan.orders import RunRow
from pipeline.runs.audits import ANEW, BY_ROUND, KNOBS, ROUNDS, read_audits, runs_of_audits
from pipeline.runs.histories import read_history
from pipeline.runs.index import planned_key, read_encoded
from pipeline.runs.kept import kept_identity, refuse_results_in_another_precision, stage_of
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
    if key != planned_key(row.id) and not _is_the_kept(row):
        raise QuorumError(
            f"{path}: is neither the planned training nor the kept one; run `dvc repro {_training_of(row)}`"
        )
    return key


def _is_the_kept(row: RunRow) -> bool:
    """Whether a run's rounds are those of the result that is kept of the planned run."""
    path = layout.kept(row.id)
    kept = read_json(path) if path.is_file() else {}
    return (
        bool(kept)
        and kept["identity"] == kept_identity(row.id)
        and kept["history"] == read_table(layout.history(row.id))
    )


def to_train() -> list[str]:
    """DVC's names of the trainings that the audits still need here; none where all audits are kept.

    A checkpoint that has lost models of its rounds is removed: gone on with, it would not bring them back. What DVC
    takes for trained, `dvc repro --force` trains again.

    Raises:
        QuorumError: an audit is missing, and results are kept in another precision; or there is nothing to audit.
    """
    kept = set(read_audits())
    if kept == set(KNOBS):
        return []
    refuse_results_in_another_precision()
    if not (rows := runs_of_audits()[ANEW]):
        raise QuorumError("params.yaml: keep_rounds: names no seed of a run that writes summaries; set one")
    wanted: dict[str, RunRow] = {}
    for row in rows:
        if not _is_here(trained_as, row):
            wanted[row.id] = row
        elif not {BY_ROUND, ROUNDS} <= kept and not _is_here(models_of, row):
            wanted.setdefault(trained_as(row), row)  # two rows of one training read one training's rounds
    keys = [planned_key(row.id) for row in wanted.values() if layout.encoded_index(row.id).is_file()]
    lost = {key for key in keys if key is not None and _has_lost_rounds(key)}
    remove_checkpoints([layout.checkpoints() / key for key in sorted(lost)])
    return [_training_of(row) for row in wanted.values()]


def _is_here(look: Callable[[RunRow], object], row: RunRow) -> bool:
    """Whether what is looked for, as `trained_as` and `models_of` do, is on this machine."""
    try:
        look(row)
    except QuorumError:
        return False
    return True


def _has_lost_rounds(key: str) -> bool:
    """Whether a checkpoint has rounds whose models are not here."""
    done = load_progress(layout.checkpoints() / key, key)
    if done is None:
        return False
    progress, private = done
    return not all(
        layout.round_adapter(key, number, owner).is_file()
        for number in range(1, progress.round + 1)
        for owner in ("server", *private.states)
    )


def _training_of(row: RunRow) -> str:
    return stage_of(row).replace("evaluate", "train", 1)
