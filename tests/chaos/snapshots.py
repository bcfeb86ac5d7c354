"""The tiny pipeline a stage at a time: the workspace before each stage, and the digests of what the stage leaves."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from forked import forked
from workspaces import SMALL, Workspace

RUNS = ("fedselectkd", "fedavg", "zeroshot")
PARAMS: dict[str, Any] = SMALL | {"runs": {name: SMALL["runs"][name] for name in RUNS}, "sections": {"main": [*RUNS]}}
STAGES: dict[str, tuple[str, ...]] = {
    "plan": (), "ingest": ("qmsum",), "backbone": ("tiny-llama",), "prepare": ("qmsum",), "partition": ("domains",),
    "encode": ("domains",), "train": RUNS, "predict": RUNS, "evaluate": RUNS, "analyze": (), "report": (),
}  # fmt: skip
"""Stage -> the arguments of its calls; empty: one call without an argument."""
STATE = ("params.yaml", "requirements.lock", "data", "models", "reports", "results", "work")
RESULTS = ("data", "models", "reports", "results", "work/store", "work/generated")
"""What has the same bytes every time, but for `CIRCUMSTANCES`. The rest of `work/` has seconds, locks, checkpoints."""
CIRCUMSTANCES = ("commit", "training_seconds")
"""The keys of a result that tell how it was computed."""


class Snapshots:
    """Copies of the workspace before every stage; `results`: stage -> digests of what it leaves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.results: dict[str, dict[str, str]] = {}
        workspace = Workspace.laid(folder / "made", **PARAMS)
        for stage in STAGES:
            _copy(workspace.folder, folder / stage)
            run(workspace.folder, stage)
            self.results[stage] = results(workspace.folder)

    def before(self, stage: str, at: Path, *, linked: bool = True) -> Path:
        """Copy the workspace as it was before a stage. Links save time on the same disk."""
        _copy(self._folder / stage, at, linked=linked)
        return at


def run(folder: Path, stage: str) -> None:
    """Run a stage for all runs in this process."""
    workspace = Workspace(folder)
    for argument in STAGES[stage]:
        workspace.stage(stage, argument)
    if not STAGES[stage]:
        workspace.stage(stage)


def rerun(folder: Path, stage: str) -> str:
    """Run a stage once more in a child. Its error, or an empty string."""
    ended = forked(lambda: run(folder, stage))
    return f"{stage} ended with {ended.status}: {ended.output[-2000:]}" if ended.status else ""


def _copy(folder: Path, into: Path, *, linked: bool = True) -> None:
    """Copy a workspace, with links to the files that nothing writes in place. SQLite writes in place."""

    def put(source: str, target: str) -> None:
        (os.link if linked and "checkpoints" not in source else shutil.copy2)(source, target)

    into.mkdir(parents=True)
    for name in STATE:
        if (folder / name).is_dir():
            shutil.copytree(folder / name, into / name, copy_function=put)
        elif (folder / name).exists():
            shutil.copy2(folder / name, into / name)


def digest(name: str, content: bytes) -> str:
    """The sha256 of a file; of a result without its circumstances."""
    if name.endswith(".json.gz"):
        with suppress(EOFError, OSError, ValueError):  # half of a file is another one
            seeds = json.loads(gzip.decompress(content))["seeds"].values()
            known = [{key: value for key, value in own.items() if key not in CIRCUMSTANCES} for own in seeds]
            content = json.dumps(known).encode()
    return hashlib.sha256(content).hexdigest()


def results(folder: Path) -> dict[str, str]:
    """Every result's digest, temporary files included and locks excluded."""
    paths = (path for name in RESULTS for path in sorted((folder / name).rglob("*")))
    return {
        str(path.relative_to(folder)): digest(path.name, path.read_bytes())
        for path in paths
        if path.is_file() and path.suffix != ".lock"
    }


def differences(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Names of files that are missing, superfluous, or have other bytes."""
    return sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
