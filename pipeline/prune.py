"""Disk space back: what no planned run needs any more of the state that outlives a stage."""

from __future__ import annotations

import shutil

from pipeline import layout
from pipeline.encoded import read_encoded, training_key
from pipeline.progress import say
from pipeline.spec import MainSpec, TrainStageSpec, read_spec


def prune(running: str | None = None) -> None:
    """Remove the checkpoints of trainings all of whose runs have been written; resumable ones stay.

    Args:
        running: a run that is about to train, whatever lies there of it.
    """
    waiting: dict[str, bool] = {}
    for row in read_spec(layout.stage_spec("main"), MainSpec).runs:
        spec = read_spec(layout.stage_spec("train", row.id), TrainStageSpec)
        if spec.training is not None:
            key = training_key(spec.training, read_encoded(row.id))
            done = row.id != running and (layout.MODELS / row.id / "history.csv").is_file()
            waiting[key] = waiting.get(key, False) or not done
    freed = 0
    for key, needed in waiting.items():
        folder = layout.checkpoints() / key
        if not needed and folder.is_dir():
            freed += sum(path.stat().st_size for path in folder.iterdir())
            shutil.rmtree(folder)
    if freed:
        say(f"prune: {freed / 1e9:.1f} GB of finished checkpoints removed")
