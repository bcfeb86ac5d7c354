"""A full disk, a folder that cannot be written, two at once, MLflow's database locked or gone.

Each is one plain line, or goes on without MLflow; and one plain re-run ends with the same bytes.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

import pytest
from forked import forked
from ladder import PARAMS, STAGES, Ladder, differences, results, run
from rooms_of_disk import BLOCK, can_mount, only, read_only, small_disk
from workspaces import ROOT, Workspace

from pipeline import __main__ as command_line
from pipeline.runs import tracking

PLACES = {
    "plan": "data",
    "ingest": "data",
    "backbone": "models",
    "prepare": "data",
    "partition": "data",
    "encode": "work",
    "train": "work",
    "generate": "reports",
    "evaluate": "work",
    "main": "reports",
}
"""Stage -> a folder that it writes to."""
needs_mounts = pytest.mark.skipif(not can_mount(), reason="left out: only who may mount can have a small disk")


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    return Ladder(tmp_path_factory.mktemp("ladder"))


@needs_mounts
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["full", "half of what it writes fits"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_is_one_line(ladder: Ladder, stage: str, share: float, tmp_path: Path) -> None:
    def filled() -> None:
        folder = tmp_path / "disk"
        small_disk(folder)
        copied = ladder.before(stage, folder / "workspace", linked=False)
        before = _size(copied)
        run(copied, stage)
        growth = _size(copied) - before
        shutil.rmtree(copied)
        ladder.before(stage, copied, linked=False)
        _fails_and_goes_on(ladder, copied, stage, lambda: only(int(share * growth) // BLOCK * BLOCK, folder))

    _succeeds(filled)


@needs_mounts
@pytest.mark.parametrize("stage", STAGES)
def test_a_folder_that_cannot_be_written_is_one_line(ladder: Ladder, stage: str, tmp_path: Path) -> None:
    folder = ladder.before(stage, tmp_path / "workspace", linked=False)
    _succeeds(lambda: _fails_and_goes_on(ladder, folder, stage, lambda: read_only(folder / PLACES[stage])))


def _fails_and_goes_on(
    ladder: Ladder, folder: Path, stage: str, trouble: Callable[[], AbstractContextManager[None]]
) -> None:
    with trouble():
        told = forked(lambda: _command(folder, stage))
    errors = [line for line in told.said.splitlines() if line.startswith("error: ")]
    assert told.status == 1, told
    assert len(errors) == 1, told.said
    assert "Traceback" not in told.said, told.said
    again = forked(lambda: run(folder, stage))
    assert again.status == 0, f"{errors[0]}\n{again.said}"
    lost = differences(results(folder), ladder.made[stage])
    assert not lost, f"{errors[0]}\n{lost}"


def _command(folder: Path, stage: str) -> None:
    """The stage as its command line has it, MLflow aside."""
    tracking.live = lambda run_id: nullcontext(lambda rows: None)  # type: ignore[assignment]
    tracking.project = lambda: None
    with Workspace(folder).entered():
        for argument in STAGES[stage] or ("",):
            sys.argv = ["pipeline", stage, *([argument] if argument else [])]
            try:
                command_line.cli()
            except SystemExit as ended:
                if ended.code:
                    raise


def _succeeds(work: Callable[[], object]) -> None:
    ended = forked(work)
    assert ended.status == 0, ended.said[-4000:]


def _size(folder: Path) -> int:
    return sum(-(-path.stat().st_size // BLOCK) * BLOCK for path in folder.rglob("*") if path.is_file())


def test_two_repros_at_once_do_not_spoil_each_other(tmp_path: Path) -> None:
    """DVC lets one of them wait or refuses it, in a line."""
    workspace = Workspace.laid(tmp_path / "two", **PARAMS)
    alone = workspace.copied(tmp_path / "alone")
    alone.repro("prepare@qmsum", "backbone")
    both = [
        subprocess.Popen(
            ["dvc", "repro", "prepare@qmsum", "backbone"],
            cwd=workspace.folder,
            env=workspace.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        _, told = process.communicate()
        assert process.returncode == 0 or told.count("ERROR") == 1, told
        assert "Traceback" not in told
    workspace.pipeline("mend")
    workspace.repro("prepare@qmsum", "backbone")
    assert not differences(results(workspace.folder), results(alone.folder))


@contextmanager
def locked(database: Path) -> Iterator[None]:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def names(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / "mlflow.db")) as store:
        return {name for (name,) in store.execute("select name from runs")}


@pytest.fixture
def finished(ladder: Ladder, tmp_path: Path) -> Workspace:
    """A workspace before its page, whose MLflow store is up to date with what there is."""
    workspace = Workspace(ladder.before("main", tmp_path / "workspace", linked=False))
    workspace.env["PYTHONPATH"] = str(ROOT)
    workspace.pipeline("track")
    return workspace


def test_a_page_goes_on_without_a_store_that_is_locked(ladder: Ladder, finished: Workspace) -> None:
    with locked(finished.folder / "mlflow.db"):
        told = finished.pipeline("main").stderr
    assert told.count("MLflow is not up to date") == 1
    assert "Traceback" not in told
    assert not differences(results(finished.folder), ladder.made["main"])
    finished.pipeline("main")
    assert {"fedselectkd-1", "fedavg-1", "zeroshot-1", "report"} <= names(finished.folder)


def test_a_training_goes_on_without_a_store_that_is_locked(ladder: Ladder, finished: Workspace) -> None:
    shutil.rmtree(finished.folder / "models/main/fedavg-1")
    with locked(finished.folder / "mlflow.db"):
        told = finished.pipeline("train", "main/fedavg-1").stderr
    assert told.count("training goes on without MLflow") == 1
    assert "Traceback" not in told
    finished.pipeline("main")
    assert not differences(results(finished.folder), ladder.made["main"])
    assert "fedavg-1" in names(finished.folder)


def test_a_store_that_is_gone_comes_back_with_the_next_page(ladder: Ladder, finished: Workspace) -> None:
    finished.pipeline("main")
    (finished.folder / "mlflow.db").unlink()
    finished.pipeline("main")
    assert {"fedselectkd-1", "fedavg-1", "zeroshot-1", "report"} <= names(finished.folder)
    assert not differences(results(finished.folder), ladder.made["main"])
