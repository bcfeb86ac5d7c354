"""The tiny pipeline a stage at a time: the workspace before each stage, and the digests of what the stage leaves."""

import gc
import gzip
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from workspaces import SMALL, Workspace, files_of

RUNS = ("fedselectkd", "fedavg", "zeroshot")
PARAMS: dict[str, Any] = SMALL | {"runs": {name: SMALL["runs"][name] for name in RUNS}, "sections": {"main": [*RUNS]}}
STAGES: dict[str, tuple[str, ...]] = {
    "plan": (), "ingest": ("qmsum",), "backbone": ("tiny-llama",), "prepare": ("qmsum",), "partition": ("domains",),
    "encode": ("domains",), "train": RUNS, "predict": RUNS, "evaluate": RUNS, "analyze": (), "report": (),
}  # fmt: skip
"""Stage -> the arguments of its calls; empty: one call without an argument."""
RESULTS = ("data", "models", "reports", "results", "work/store", "work/generated")
"""What has the same bytes every time, but for `CIRCUMSTANCES`. The rest of `work/` has seconds, locks, checkpoints."""
CIRCUMSTANCES = ("commit", "training_seconds")
"""The keys of a result that tell how it was computed."""

Digests = dict[str, str]


class Snapshots:
    """The workspace before every stage, digests of what the stage leaves, and how long `dvc repro` takes for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.results: dict[str, Digests] = {}
        self.seconds: dict[str, float] = {}
        workspace = Workspace.laid(folder / "made", **PARAMS)
        for stage in STAGES:
            workspace.copied(folder / stage)
            began = time.monotonic()
            workspace.repro(stage)
            self.seconds[stage] = time.monotonic() - began
            self.results[stage] = results(workspace.folder)

    def before(self, stage: str, at: Path, *, linked: bool = True) -> Path:
        """A copy of the workspace as it was before the stage."""
        return Workspace(self._folder / stage).copied(at, linked=linked).folder


class Ended(NamedTuple):
    """A child's end: its exit status, or minus the signal that killed it; and its output."""

    status: int | None
    output: str


def forked(work: Callable[[], object]) -> Ended:
    """Run work in a child, which has all that is imported here. An exception is printed, and is status 1."""
    with tempfile.TemporaryFile() as output:

        def child() -> None:
            for handle in (1, 2):
                os.dup2(output.fileno(), handle)
            sys.stdout, sys.stderr = (os.fdopen(handle, "w", buffering=1, closefd=False) for handle in (1, 2))
            work()

        gc.freeze()  # the child must not collect the parent's objects
        process = get_context("fork").Process(target=child)
        process.start()
        process.join(180)
        process.terminate()
        process.join()
        output.seek(0)
        return Ended(process.exitcode, output.read().decode("utf-8", "replace"))


def run(folder: Path, stage: str) -> None:
    """Run a stage for all runs in this process."""
    for arguments in [(one,) for one in STAGES[stage]] or [()]:
        Workspace(folder).stage(stage, *arguments)


def rerun(folder: Path, stage: str, wanted: Digests) -> str:
    """Run a stage once more in a child. Its error, or the first files that differ from what is wanted, or nothing."""
    ended = forked(lambda: run(folder, stage))
    if ended.status:
        return f"{stage} ended with {ended.status}: {ended.output[-2000:]}"
    return ", ".join(differences(results(folder), wanted)[:5])


def digest(name: str, content: bytes) -> str:
    """The sha256 of a file; of a result without its circumstances."""
    if name.endswith(".json.gz"):
        with suppress(EOFError, OSError, ValueError):  # half of a file is another one
            seeds = json.loads(gzip.decompress(content))["seeds"].values()
            known = [{key: value for key, value in own.items() if key not in CIRCUMSTANCES} for own in seeds]
            content = json.dumps(known).encode()
    return hashlib.sha256(content).hexdigest()


def results(folder: Path) -> Digests:
    """Every result's digest, temporary files included."""
    return results_of({f"{name}/{path}": held for name in RESULTS for path, held in files_of(folder / name).items()})


def results_of(files: dict[str, bytes]) -> Digests:
    """The same, of a disk's files. Locks are no results."""
    inside = tuple(f"{name}/" for name in RESULTS)
    names = (name for name in files if name.startswith(inside) and not name.endswith(".lock"))
    return {name: digest(name, files[name]) for name in names}


def differences(found: Digests, wanted: Digests) -> list[str]:
    """Names of files that are missing, superfluous, or have other bytes."""
    return sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
