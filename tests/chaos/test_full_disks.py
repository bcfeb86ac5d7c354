"""A full disk, a read-only folder, two `dvc repro` at once, and a locked MLflow database.

Each gives one plain line, or the stage goes on without MLflow. One plain re-run ends with the same bytes.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest
from forked import forked
from small_disks import BLOCK, can_mount, only, read_only, small_disk
from snapshots import PARAMS, STAGES, Snapshots, differences, results, run
from workspaces import ROOT, Workspace

from pipeline import __main__ as command_line
from pipeline.runs import tracking
from pipeline.stages.train import unlogged

FOLDERS = {
    "plan": "data", "ingest": "data", "backbone": "models", "prepare": "data", "partition": "data", "encode": "work",
    "train": "work", "predict": "reports", "evaluate": "results", "analyze": "reports", "report": "reports",
}  # fmt: skip
"""Stage -> a folder that it writes to."""
needs_mounts = pytest.mark.skipif(not can_mount(), reason="left out: this user may not mount a small disk")


@needs_mounts
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["full", "half of what it writes fits"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_is_one_line(snapshots: Snapshots, stage: str, share: float, tmp_path: Path) -> None:
    def fill() -> None:
        folder = tmp_path / "disk"
        small_disk(folder)
        copy = snapshots.before(stage, folder / "workspace", linked=False)
        before = size(copy)
        run(copy, stage)
        growth = size(copy) - before
        shutil.rmtree(copy)
        snapshots.before(stage, copy, linked=False)
        fails_and_goes_on(snapshots, copy, stage, only(int(share * growth) // BLOCK * BLOCK, folder))

    succeeds(fill)


@needs_mounts
@pytest.mark.parametrize("stage", STAGES)
def test_a_read_only_folder_is_one_line(snapshots: Snapshots, stage: str, tmp_path: Path) -> None:
    folder = snapshots.before(stage, tmp_path / "workspace", linked=False)
    succeeds(lambda: fails_and_goes_on(snapshots, folder, stage, read_only(folder / FOLDERS[stage])))


def fails_and_goes_on(snapshots: Snapshots, folder: Path, stage: str, trouble: AbstractContextManager[None]) -> None:
    with trouble:
        failed = forked(lambda: run_command(folder, stage))
    errors = [line for line in failed.output.splitlines() if line.startswith("error: ")]
    assert failed.status == 1, failed
    assert len(errors) == 1, failed.output
    assert "Traceback" not in failed.output, failed.output
    again = forked(lambda: run(folder, stage))
    assert again.status == 0, f"{errors[0]}\n{again.output}"
    lost = differences(results(folder), snapshots.results[stage])
    assert not lost, f"{errors[0]}\n{lost}"


def run_command(folder: Path, stage: str) -> None:
    """Run a stage by its command line, without MLflow."""
    tracking.live = lambda name: nullcontext(unlogged)  # type: ignore[assignment]
    tracking.project = lambda: None
    with Workspace(folder).entered():
        for argument in STAGES[stage] or ("",):
            sys.argv = ["pipeline", stage, *([argument] if argument else [])]
            try:
                command_line.cli()
            except SystemExit as ended:
                if ended.code:
                    raise


def succeeds(work: Callable[[], object]) -> None:
    ended = forked(work)
    assert ended.status == 0, ended.output[-4000:]


def size(folder: Path) -> int:
    return sum(-(-path.stat().st_size // BLOCK) * BLOCK for path in folder.rglob("*") if path.is_file())


def test_two_repros_at_once_do_not_damage_each_other(tmp_path: Path) -> None:
    """DVC lets one of them wait or refuses it, in a line."""
    workspace = Workspace.laid(tmp_path / "two", **PARAMS)
    alone = workspace.copied(tmp_path / "alone")
    targets = "prepare@qmsum", "backbone@tiny-llama"
    alone.repro(*targets)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen(["dvc", "repro", *targets], cwd=workspace.folder, env=workspace.env, **pipes) for _ in range(2)
    ]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0 or errors.count("ERROR") == 1, errors
        assert "Traceback" not in errors
    workspace.pipeline("mend")
    workspace.repro(*targets)
    assert not differences(results(workspace.folder), results(alone.folder))


@pytest.mark.parametrize(
    ("command", "removed", "warning"),
    [
        (("report",), "", "MLflow is not up to date"),
        (("train", "fedavg"), "models/fedavg", "training goes on without MLflow"),
    ],
    ids=["a page", "a training"],
)
def test_a_stage_goes_on_while_mlflows_database_is_locked(
    snapshots: Snapshots, tmp_path: Path, command: tuple[str, ...], removed: str, warning: str
) -> None:
    """The next page brings the database up to date."""
    workspace = Workspace(snapshots.before("report", tmp_path / "workspace", linked=False))
    workspace.env["PYTHONPATH"] = str(ROOT)
    workspace.pipeline("track")
    if removed:
        shutil.rmtree(workspace.folder / removed)
    with closing(sqlite3.connect(workspace.folder / "mlflow.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        printed = workspace.pipeline(*command).stderr
    assert printed.count(warning) == 1
    assert "Traceback" not in printed
    workspace.pipeline("report")
    assert not differences(results(workspace.folder), snapshots.results["report"])
    with closing(sqlite3.connect(workspace.folder / "mlflow.db")) as store:
        names = {name for (name,) in store.execute("select name from runs")}
    assert names >= {"fedselectkd-1", "fedavg-1", "zeroshot-1", "report"}
