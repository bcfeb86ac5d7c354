"""Frees disk space: removes files in work/ that no planned run needs any more."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.clients.kinds import AnySetting
from pipeline.plan.orders import PartitionOrder, RunRow, Training, TrainOrder, planned_runs, read_order
from pipeline.runs.index import is_as_planned, planned_key
from pipeline.runs.jobs import decoding_job_of, scoring_job_of
from pipeline.workspace import layout
from pipeline.workspace.files import locked_if_free, read_json, sha256_json
from pipeline.workspace.progress import say


def prune(*, unplanned: bool = False) -> None:
    """Remove the checkpoints of trainings whose runs are all finished; checkpoints of unfinished trainings stay.

    While a planned run's examples are not encoded, it is unknown which prefixes, summaries and scores it needs, so all
    of them stay. All checkpoints stay while an experiment on labelled texts has an unfinished training.

    Args:
        unplanned: also remove what only runs of other plans need: checkpoints, models of every round, stored prefixes,
            summaries and scores. Finished and unfinished trainings of other workspaces on this disk stay.
    """
    planned = planned_runs()
    rows = [row for row in planned if layout.encoded_index(row.id).is_file()]
    unencoded = [row for row in planned if row not in rows]
    waiting = _waiting(planned)
    folders = [path for path in layout.checkpoints().glob("*") if path.is_dir()]
    unfinished = _unfinished_on_texts() if unplanned else []
    if unfinished:
        say(
            f"prune: checkpoints of other plans stay: {unfinished[0]} has a training to finish, and its checkpoint is "
            "not known here; `dvc repro` there finishes it"
        )
    others = _trainings_elsewhere()
    stays = not unplanned or bool(unfinished)
    wanted = waiting | {key: waits or waiting.get(key, stays) for key, waits in others.items()}
    files = remove_checkpoints([folder for folder in folders if not wanted.get(folder.name, stays)])
    if unplanned and unencoded:
        say(
            f"prune: prefixes, summaries and scores stay: {unencoded[0].id} is planned and not encoded, and which "
            "of them it needs is not known; `dvc repro encode encode-more` encodes what is planned"
        )
    elif unplanned:
        files += _remove(_unplanned_entries(rows))
        for folder in (folder for folder in layout.rounds().glob("*") if folder.name not in wanted):
            files += _remove([path for path in folder.rglob("*") if path.is_file()])
            shutil.rmtree(folder)
    if files:
        say(f"prune: {sum(files) / 1e9:.1f} GB of work/ that no run waits for removed")


def prune_training(run_id: str) -> None:
    """Remove the checkpoint of a run's training, unless another planned run of this training is unfinished."""
    key = planned_key(run_id)
    folder = layout.checkpoints() / (key or "none")
    if key is not None and folder.is_dir() and not _waiting(planned_runs()).get(key, False):
        remove_checkpoints([folder])


def _elsewhere() -> list[Path]:
    """The other workspaces that have a plan, for example experiments."""
    plans = layout.work() / "plans"
    others = (plan.parent for plan in plans.rglob(layout.last_plan().name) if plan != layout.last_plan())
    return [layout.home() / folder.relative_to(plans) for folder in others]


def _unfinished_on_texts() -> list[Path]:
    """The experiments on labelled texts that have an unfinished training."""
    found = []
    for there in _elsewhere():
        orders = {path.stem: read_json(path) for path in (there / layout.order("train", "any")).parent.glob("*.json")}
        runs = [(name, seed) for name, order in orders.items() if not order["left_out"] for seed in order["seeds"]]
        if not all((there / layout.trained_as(layout.run_on_texts(name, seed))).is_file() for name, seed in runs):
            found.append(there)
    return found


def _planned_elsewhere() -> Iterator[tuple[Path, str, Any]]:
    """(Workspace, run id, its training's knobs) of every run on meetings that another workspace plans."""
    for there in _elsewhere():
        for group in (layout.MAIN, layout.MORE):
            for path in (there / layout.order("train", group)).with_suffix("").glob("*.json"):
                yield there, f"{group}/{path.stem}", read_json(path)["training"]


def _awaited_elsewhere() -> set[str]:
    """Hashes of the knobs of unfinished trainings that other workspaces plan."""
    return {
        sha256_json(training)
        for there, run, training in _planned_elsewhere()
        if not (there / layout.trained_as(run)).is_file()
    }


def _trainings_elsewhere() -> dict[str, bool]:
    """Each training on meetings of other workspaces -> whether one of its runs is unfinished."""
    found: dict[str, bool] = {}
    for there, run, training in _planned_elsewhere():
        note, index = there / layout.trained_as(run), there / layout.encoded_index(run)
        written = read_json(note)["training"] if note.is_file() else None
        if written is not None:
            found.setdefault(written, False)
        if training is not None and index.is_file():
            key = sha256_json([training, read_json(index)])
            found[key] = found.get(key, False) or key != written
    return found


def _waiting(planned: Sequence[RunRow]) -> dict[str, bool]:
    """Training -> whether one of its planned runs is unfinished, here or in another workspace.

    A run whose examples are not encoded yet may share its training with an encoded run.
    """
    rows = [row for row in planned if layout.encoded_index(row.id).is_file()]
    later = [_shared(row) for row in planned if row not in rows]
    awaited = _awaited_elsewhere()
    waiting: dict[str, bool] = {}
    for row in rows:
        key = planned_key(row.id)
        if key is not None:
            here = not is_as_planned(row.id) or _shared(row) in later
            wanted = here or sha256_json(read_json(layout.order("train", row.id))["training"]) in awaited
            waiting[key] = waiting.get(key, False) or wanted
    return waiting


def remove_checkpoints(folders: Sequence[Path]) -> list[int]:
    """Remove the checkpoints that no process uses, such as a copy of the workspace; returns their sizes in bytes."""
    sizes = []
    for folder in folders:
        with locked_if_free(layout.checkpoint_lock(folder.name)) as free:
            if free and folder.is_dir():  # a training that diverged in its first round has no folder
                # The database before its journal: without the journal an incomplete database would seem complete.
                sizes += _remove(sorted(folder.iterdir()))
                folder.rmdir()
    return sizes


def _remove(files: Sequence[Path]) -> list[int]:
    sizes = [path.stat().st_size for path in files]
    for path in files:
        path.unlink()
    return sizes


def _shared(row: RunRow) -> tuple[Training | None, AnySetting]:
    """A run's training and setting, equal for two runs that share one training."""
    setting = read_order(layout.order("partition", row.setting), PartitionOrder).setting
    return read_order(layout.order("train", row.id), TrainOrder).training, setting


def _unplanned_entries(rows: Sequence[RunRow]) -> list[Path]:
    """Stored prefixes and cached summaries and scores that belong to no planned run.

    A prefix that another workspace has encoded stays. Summaries and scores that it needs are computed again.
    """
    needed: set[Path] = set()
    for row in rows:
        if layout.history(row.id).is_file():
            needed.add(decoding_job_of(row.id).path)
        if layout.predictions(row.id).is_file():
            needed.add(scoring_job_of(row.id).path)
    here = [layout.encoded_index(row.id) for row in rows]
    elsewhere = [path for there in _elsewhere() for path in (there / layout.ENCODED).rglob("*.json")]
    keys = {key for path in here + elsewhere for key in _keys_in(read_json(path))}
    stored = [path for path in layout.store().rglob("*.safetensors") if path.name.split(".")[0] not in keys]
    results = [*layout.generated().glob("*.json"), *layout.evaluated().glob("*.json")]
    return stored + [path for path in results if path not in needed]


def _keys_in(index: Mapping[str, Any]) -> set[str]:
    """The keys of the store that an index of meetings or of labelled texts names."""
    if "views" in index:
        texts = (own for view in index["views"].values() for own in view["entries"].values())
        return {key for own in texts for key, _ in own}
    splits = (own for client in index["clients"].values() for own in client.values())
    return {entry["key"] for own in splits for entry in own}
