"""A full disk, a read-only folder, two `dvc repro` at once, and a locked MLflow database.

Each gives one plain line, or the stage goes on without MLflow. One plain re-run ends with the same bytes.
"""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest
from workspaces import Workspace

from chaos.disks import BLOCK, only, read_only, small_disk
from chaos.snapshots import STAGES, Snapshots, differences, forked, rerun, results, run
from pipeline import __main__ as command_line
from pipeline.runs import tracking
from pipeline.stages.train import unlogged

FOLDERS = {
    "plan": "data", "ingest": "data", "backbone": "models", "prepare": "data", "partition": "data", "encode": "work",
    "train": "work", "predict": "reports", "evaluate": "results", "analyze": "reports", "report": "reports",
}  # fmt: skip
"""Stage -> a folder that it writes to."""
WARNINGS = [
    (("report",), "", "MLflow is not up to date"),
    (("train", "fedavg"), "models/fedavg", "training of fedavg goes on without MLflow"),
]


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["full", "half of what it writes fits"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_is_one_line(snapshots: Snapshots, stage: str, share: float, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        copy = snapshots.before(stage, disk / "workspace", linked=False)
        before = shutil.disk_usage(disk).used
        assert forked(lambda: run(copy, stage)).status == 0
        growth = shutil.disk_usage(disk).used - before
        shutil.rmtree(copy)
        snapshots.before(stage, copy, linked=False)
        fails_and_goes_on(snapshots, copy, stage, only(int(share * growth) // BLOCK * BLOCK, disk))


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("stage", STAGES)
def test_a_read_only_folder_is_one_line(snapshots: Snapshots, stage: str, tmp_path: Path) -> None:
    folder = snapshots.before(stage, tmp_path / "workspace", linked=False)
    fails_and_goes_on(snapshots, folder, stage, read_only(folder / FOLDERS[stage]))


def fails_and_goes_on(snapshots: Snapshots, folder: Path, stage: str, trouble: AbstractContextManager[None]) -> None:
    with trouble:
        failed = forked(lambda: run_command(folder, stage))
    errors = [line for line in failed.output.splitlines() if line.startswith("error: ")]
    assert failed.status == 1, failed
    assert len(errors) == 1, failed.output
    assert "Traceback" not in failed.output, failed.output
    assert not (wrong := rerun(folder, stage, snapshots.results[stage])), f"{errors[0]}\n{wrong}"


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


def test_two_repros_at_once_do_not_damage_each_other(snapshots: Snapshots, tmp_path: Path) -> None:
    """DVC lets one of them wait or refuses it, in a line."""
    workspace = Workspace(snapshots.before("plan", tmp_path / "two"))
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    command = ["dvc", "repro", "backbone", "prepare"]
    both = [subprocess.Popen(command, cwd=workspace.folder, env=workspace.env, **pipes) for _ in range(2)]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0 or errors.count("ERROR") == 1, errors
        assert "Traceback" not in errors
    workspace.pipeline("mend")
    workspace.repro("backbone", "prepare")
    assert not differences(results(workspace.folder), snapshots.results["prepare"])


@pytest.mark.parametrize(("command", "removed", "warning"), WARNINGS, ids=["a page", "a training"])
def test_a_stage_goes_on_while_mlflows_database_is_locked(
    snapshots: Snapshots, tmp_path: Path, command: tuple[str, ...], removed: str, warning: str
) -> None:
    """The next page brings the database up to date."""
    workspace = Workspace(snapshots.before("report", tmp_path / "workspace"))
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
    names = {name for (name,) in workspace.logged("select name from runs")}
    assert names >= {"fedselectkd-1", "fedavg-1", "zeroshot-1", "report"}
