"""Frees disk space: removes files in work/ that no planned run needs any more."""

import shutil
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.plan.orders import planned_run, planned_runs
from pipeline.runs.index import planned_key, trained_key
from pipeline.runs.jobs import jobs_of
from pipeline.workspace import layout
from pipeline.workspace.files import locked, read_json
from pipeline.workspace.progress import say


def remove_unless_awaited(run_id: str, key: str) -> None:
    """Remove a training's checkpoint, unless another planned run of this training still has to be exported."""
    own = planned_run(run_id)
    alike = [row for row in planned_runs() if (row.setting, row.training) == (own.setting, own.training)]
    if all(trained_key(row.id) == key for row in alike if not row.left_out):
        remove_checkpoints([layout.checkpoints() / key])


def prune(*, unplanned: bool = False) -> None:
    """Remove the checkpoints of trainings whose runs are all finished; those of unfinished trainings stay.

    `unplanned`: also remove what no plan of any workspace needs: checkpoints, models of every round, stored prefixes,
    and cached predictions. All of them stay where a plan has a setting that is not encoded.
    """
    finished: dict[str, bool] = {}
    needed: set[str] = set()
    complete = True
    for there in _workspaces():
        with chdir(there):
            try:
                for row in planned_runs():
                    if not row.left_out and (key := planned_key(row.id)) is not None:
                        finished[key] = finished.get(key, True) and trained_key(row.id) == key
                needed |= _entries()
            except QuorumError as error:
                complete = False
                if unplanned:
                    say(f"prune: files of other plans stay, since {there} is not encoded: {error}")
    folders = [path for path in layout.checkpoints().glob("*") if path.is_dir()]
    removed = remove_checkpoints([one for one in folders if finished.get(one.name, unplanned and complete)])
    if unplanned and complete:
        removed += _remove([path for path in layout.store().rglob("*.safetensors") if path.stem not in needed])
        removed += _remove([path for path in layout.generated().glob("*.json") if path.name not in needed])
        for folder in (folder for folder in layout.rounds().glob("*") if folder.name not in finished):
            removed += _remove([path for path in folder.rglob("*") if path.is_file()])
            shutil.rmtree(folder)
    if removed:
        say(f"prune: {removed / 1e9:.1f} GB of work/ that no run waits for removed")


def _workspaces() -> list[Path]:
    """This workspace and the others that have a plan, for example experiments."""
    plans = layout.work() / "plans"
    others = (layout.home() / plan.parent.relative_to(plans) for plan in plans.rglob(layout.last_plan().name))
    return [Path.cwd(), *(there for there in others if there.is_dir() and there != Path.cwd())]


def _entries() -> set[str]:
    """The keys in the store that this workspace's runs read, and the names of the files of their predictions."""
    indices = layout.ENCODED.glob("*/*.json")
    keys = {window[0] for path in indices for own in read_json(path).get("entries", {}).values() for window in own}
    trained = [row.id for row in planned_runs() if layout.trained_as(row.id).is_file()]
    return keys | {job.path.name for run in trained for job in jobs_of(run)}


def remove_checkpoints(folders: Sequence[Path]) -> int:
    """Remove the checkpoints that no process uses, such as a copy of the workspace; returns their size in bytes."""
    size = 0
    for folder in folders:
        with locked(layout.checkpoint_lock(folder.name), wait=False) as free:
            if free and folder.is_dir():  # a training that diverged in its first round has no folder
                # The database before its journal: without the journal an incomplete database would seem complete.
                size += _remove(sorted(folder.iterdir()))
                folder.rmdir()
    return size


def _remove(files: Sequence[Path]) -> int:
    """Remove files; returns their size in bytes."""
    size = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink()
    return size
