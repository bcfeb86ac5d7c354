"""The pipeline killed at 200 moments, and its power cut at 60: one plain re-run ends with the same bytes.

180 kills and all power cuts are at file operations of the stages, which run in children of this process. 20 kills are
at random moments of `dvc repro`.
"""

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from workspaces import Workspace

from chaos.disks import Disk, Loss, Operations
from chaos.snapshots import Digests, Snapshots, differences, forked, rerun, results, results_of, run
from pipeline.workspace import files

pytestmark = pytest.mark.timeout(3600)
KILLS = {
    "plan": 16, "ingest": 16, "backbone": 12, "prepare": 16, "partition": 10, "encode": 20, "train": 40, "predict": 18,
    "evaluate": 10, "analyze": 10, "report": 16,
}  # fmt: skip
"""Stage -> at how many of its file operations it is killed, evenly spread."""
CUTS = 6
"""At how many operations of each stage the power is cut, evenly spread."""
LOSSES: tuple[Loss, ...] = ("names", "contents")
REPROS, SEED = 2, 20
"""Kills of `dvc repro` of each stage, and the seed of their moments."""


def watched(folder: Path, stage: str, at: int | None = None, loss: Loss | None = None) -> None:
    """Run a stage in this process and die before one of its operations: by a power cut with a loss, or by kill -9.

    A kill in `os.fsync` leaves half of the file. A process that does not die prints what `undisturbed` returns.
    """
    os.chdir(folder)
    disk = Disk()

    def before(number: int, kind: str, whose: Any) -> None:
        if number == at:
            if loss:
                disk.cut(loss)
            elif kind == "fsync" and stat.S_ISREG(os.fstat(whose).st_mode):
                os.truncate(f"/proc/self/fd/{whose}", os.fstat(whose).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        disk.note(kind, whose)

    operations = Operations(before)
    run(folder, stage)
    operations.stop()
    left = {one: results_of(disk.after_a_cut(one)) for one in LOSSES}
    print("\n" + json.dumps([left, operations.count]))


def undisturbed(snapshots: Snapshots, stage: str, tmp_path: Path) -> tuple[dict[Loss, Digests], int]:
    """Digests of what a power cut at a stage's end leaves of its results, and how many operations the stage has."""
    folder = snapshots.before(stage, tmp_path / "undisturbed")
    ended = forked(lambda: watched(folder, stage))
    assert ended.status == 0, ended.output[-2000:]
    left, count = json.loads(ended.output.splitlines()[-1])
    return left, count


@pytest.mark.parametrize("how", ["killed", "power cut"])
@pytest.mark.parametrize("stage", KILLS)
def test_a_stage_that_dies_ends_in_the_same_bytes(snapshots: Snapshots, stage: str, how: str, tmp_path: Path) -> None:
    _, last = undisturbed(snapshots, stage, tmp_path)
    times = KILLS[stage] if how == "killed" else CUTS
    assert last >= times, "fewer operations than moments"
    wrong = []
    for place in range(times):
        at, loss = 1 + place * last // times, None if how == "killed" else LOSSES[place % 2]
        folder = snapshots.before(stage, tmp_path / str(at))
        ended = forked(lambda folder=folder, at=at, loss=loss: watched(folder, stage, at, loss))
        assert ended.status == -signal.SIGKILL, ended.output[-2000:]
        failed = rerun(folder, stage, snapshots.results[stage])
        if how == "killed":
            failed += ", ".join(map(str, folder.rglob("*.tmp")))
        if failed:
            wrong.append(f"{how} at operation {at} of {last}, {loss} lost: {failed}")
        shutil.rmtree(folder)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("stage", KILLS)
def test_a_power_cut_after_a_stage_loses_nothing(snapshots: Snapshots, stage: str, tmp_path: Path) -> None:
    """DVC moves the outputs into its cache by links, so what they name must be complete."""
    left, _ = undisturbed(snapshots, stage, tmp_path)
    for loss in LOSSES:
        assert not differences(left[loss], snapshots.results[stage]), f"{loss} lost"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_writer_that_does_not_flush_is_caught(
    snapshots: Snapshots, tmp_path: Path, loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a simulated power cut would find nothing."""
    monkeypatch.setattr(files, "flush", lambda path: None)
    left, _ = undisturbed(snapshots, "plan", tmp_path)
    assert differences(left[loss], snapshots.results["plan"])


@pytest.mark.parametrize("stage", KILLS)
def test_dvc_repro_killed_at_random_ends_with_the_same_bytes(snapshots: Snapshots, stage: str, tmp_path: Path) -> None:
    draw = random.Random(f"{SEED} {stage}")
    for number in range(REPROS):
        which, share = draw.choice(("all of it", "DVC alone", "the stage alone")), draw.uniform(0.2, 0.95)
        at = tmp_path / str(number)
        kill_repro(snapshots, stage, at, which, share * snapshots.seconds[stage])
        workspace = Workspace(at)
        workspace.pipeline("mend")  # as `make` does before every `dvc repro`
        done = workspace.run("dvc", "repro", stage, ok=False)
        assert not done.returncode, f"{which} killed at {share:.2f}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        lost = differences(results(at), snapshots.results[stage])
        assert not lost, f"{which} killed at {share:.2f}: {lost[:5]}"
        shutil.rmtree(at)


def kill_repro(snapshots: Snapshots, stage: str, at: Path, which: str, seconds: float) -> None:
    """Kill `dvc repro` of a stage, in a new workspace, after some seconds; after fewer if it has ended by then."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    while True:
        environment = Workspace(snapshots.before(stage, at)).env
        process = subprocess.Popen(["dvc", "repro", stage], cwd=at, env=environment, start_new_session=True, **quiet)
        time.sleep(seconds)
        if process.poll() is None:
            break
        shutil.rmtree(at)
        seconds *= 0.7
    children = psutil.Process(process.pid).children(recursive=True)
    if which == "all of it":
        os.killpg(process.pid, signal.SIGKILL)
    for one in children if which == "the stage alone" and children else [process]:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()
