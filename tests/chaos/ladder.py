"""The tiny pipeline a stage at a time: the workspace before each stage, and what the stage makes of it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from forked import forked
from workspaces import SMALL, Workspace

from pipeline.runs.prune import prune_training

RUNS = ("main/fedselectkd-1", "main/fedavg-1", "main/zeroshot-1")
PARAMS: dict[str, Any] = SMALL | {
    "runs": {
        "zeroshot": {"method": "ZeroShot"},
        "fedavg": {"method": "AdaFedAvg"},
        "fedselectkd": {"method": "AdaFedSelectKD"},
    }
}
STAGES: dict[str, tuple[str, ...]] = {
    "plan": (),
    "ingest": ("qmsum",),
    "backbone": (),
    "prepare": ("qmsum",),
    "partition": ("main",),
    "encode": ("main",),
    "train": RUNS,
    "generate": RUNS,
    "evaluate": RUNS,
    "main": (),
}
"""Stage -> what it is called with, once for each; nothing: it is called once, with nothing."""
STATE = ("params.yaml", "requirements.lock", "data", "models", "reports", "work")
RESULTS = ("data", "models", "reports", "work/store", "work/generated", "work/evaluated")
"""What has the same bytes every time; the rest of `work/` has seconds, locks, and what is resumed."""


class Ladder:
    """Copies of the workspace before every stage, and digests of what each leaves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.made: dict[str, dict[str, str]] = {}
        workspace = Workspace.laid(folder / "made", **PARAMS)
        for stage in STAGES:
            copied(workspace.folder, folder / stage)
            run(workspace.folder, stage)
            self.made[stage] = results(workspace.folder)

    def before(self, stage: str, at: Path, *, linked: bool = True) -> Path:
        """The workspace as it was before a stage, at a new place; links stay on one disk."""
        copied(self._folder / stage, at, linked=linked)
        return at


def run(folder: Path, stage: str) -> None:
    """A stage, of all runs, in this process."""
    workspace = Workspace(folder)
    for argument in STAGES[stage]:
        workspace.stage(stage, argument)
        if stage == "train":
            with workspace.entered():
                prune_training(argument)  # as the command line does
    if not STAGES[stage]:
        workspace.stage(stage)


def rerun(folder: Path, stage: str) -> str:
    """One plain re-run, in a process of its own; what it said if it failed, else nothing."""
    ended = forked(lambda: run(folder, stage))
    return f"{stage} ended with {ended.status}: {ended.said[-2000:]}" if ended.status else ""


def copied(folder: Path, into: Path, *, linked: bool = True) -> None:
    """Copy a workspace: of what nobody writes in place, links; SQLite writes in place."""

    def put(source: str, target: str) -> None:
        (os.link if linked and "checkpoints" not in source else shutil.copy2)(source, target)

    into.mkdir(parents=True)
    for name in STATE:
        if (folder / name).is_dir():
            shutil.copytree(folder / name, into / name, copy_function=put)
        elif (folder / name).exists():
            shutil.copy2(folder / name, into / name)


def results(folder: Path) -> dict[str, str]:
    """Every file's digest, temporaries and all; locks aside."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for name in RESULTS
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def differences(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Names of files that are missing, too many, or have other bytes."""
    return sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
