"""Disk space back: what no planned run needs any more of the state that outlives a stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.clients.setting import Setting
from pipeline.plan.orders import PartitionSpec, RunRow, TrainSpec, TrainStageSpec, planned_runs, read_spec
from pipeline.runs.index import read_encoded
from pipeline.runs.scoring_job import scoring_job_of
from pipeline.runs.summaries import decoding_job_of
from pipeline.runs.trained import is_as_planned, planned_key
from pipeline.workspace import layout
from pipeline.workspace.files import is_locked
from pipeline.workspace.progress import say


def prune(running: str | None = None, *, unplanned: bool = False) -> None:
    """Remove the checkpoints of trainings all of whose runs have been written; resumable ones stay.

    So do those that a run whose examples are not encoded yet has in common with one that is.

    Args:
        running: a run that is about to train, whatever lies there of it.
        unplanned: remove also what only runs of other plans need: checkpoints, stored prefixes, summaries and scores.

    As long as a planned run's examples are not encoded, nobody can say what it needs of prefixes, summaries and scores:
    they all stay.
    """
    planned = planned_runs()
    rows = [row for row in planned if layout.encoded_index(row.id).is_file()]
    unencoded = [row for row in planned if row not in rows]
    later = [_shared(row) for row in unencoded]
    waiting: dict[str, bool] = {}
    for row in rows:
        key = planned_key(row.id)
        if key is not None:
            wanted = row.id == running or not is_as_planned(row.id) or _shared(row) in later
            waiting[key] = waiting.get(key, False) or wanted
    folders = [path for path in layout.checkpoints().glob("*") if path.is_dir()]
    unwanted = [folder for folder in folders if not waiting.get(folder.name, not unplanned)]
    # A copy of the workspace may be training what is finished here.
    unwanted = [folder for folder in unwanted if not is_locked(layout.checkpoint_lock(folder.name))]
    files = [path for folder in unwanted for path in folder.iterdir()]
    if unplanned and unencoded:
        say(
            f"prune: prefixes, summaries and scores stay: {unencoded[0].id} is planned and not encoded, so that what "
            "it needs of them is not known; `dvc repro encode encode-more` encodes what is planned"
        )
    elif unplanned:
        files += _unplanned_entries(rows)
    freed = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink()
    for folder in unwanted:
        folder.rmdir()
    if freed:
        say(f"prune: {freed / 1e9:.1f} GB of work/ that no run waits for removed")


def _shared(row: RunRow) -> tuple[TrainSpec | None, Setting]:
    """What two runs have in common if they are one training."""
    settings = read_spec(layout.stage_spec("partition", layout.group_of(row.id)), PartitionSpec).settings
    return read_spec(layout.stage_spec("train", row.id), TrainStageSpec).training, settings[row.setting]


def _unplanned_entries(rows: Sequence[RunRow]) -> list[Path]:
    """Files of the store and of the kept summaries and scores that belong to no example of a planned run."""
    keys: set[str] = set()
    kept: set[Path] = set()
    for row in rows:
        splits = read_encoded(row.id).clients.values()
        keys |= {entry.key for split in splits for entries in split.values() for entry in entries}
        if layout.history(row.id).is_file():
            kept.add(decoding_job_of(row.id).path)
        if layout.predictions(row.id).is_file():
            kept.add(scoring_job_of(row.id).path)
    stored = [path for path in layout.store().rglob("*.safetensors") if path.name.split(".")[0] not in keys]
    results = [*layout.generated().glob("*.json"), *layout.evaluated().glob("*.json")]
    return stored + [path for path in results if path not in kept]
