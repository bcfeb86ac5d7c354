"""The pipeline killed at 200 moments, and its power cut at 60: one plain re-run ends with the same bytes.

180 kills and all power cuts are at file operations of the stages, which run in children of this process. 20 kills are
at random moments of `dvc repro`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import REPORT
from forked import forked, kill
from operations import Operations, is_file
from power import Disk, Loss
from snapshots import PARAMS, RESULTS, STAGES, Snapshots, differences, digest, rerun, results, run
from workspaces import Workspace

from pipeline.workspace import files

KILLS = {
    "plan": 16, "ingest": 16, "backbone": 12, "prepare": 16, "partition": 10, "encode": 20, "train": 40, "predict": 18,
    "evaluate": 10, "analyze": 10, "report": 16,
}  # fmt: skip
"""Stage -> at how many of its file operations it is killed, evenly spread."""
CUTS = 6
"""At how many operations of each stage the power is cut, evenly spread."""
LOSSES: tuple[Loss, ...] = ("names", "contents")
REPROS, SEED = 2, 20
"""Kills of each target of `dvc repro`, and the seed of their moments."""


@pytest.mark.parametrize("how", ["killed", "power cut"])
@pytest.mark.parametrize("stage", KILLS)
def test_a_stage_that_dies_at_an_operation_ends_with_the_same_bytes(
    snapshots: Snapshots, stage: str, how: str, tmp_path: Path
) -> None:
    _, last = undisturbed(snapshots, stage, tmp_path)
    times = KILLS[stage] if how == "killed" else CUTS
    assert last >= times, "fewer operations than moments"
    wrong = []
    for place in range(times):
        at, loss = 1 + place * last // times, None if how == "killed" else LOSSES[place % 2]
        folder = snapshots.before(stage, tmp_path / str(at))
        ended = forked(lambda folder=folder, at=at, loss=loss: die_at(folder, stage, at, loss))
        assert ended.status == -signal.SIGKILL, ended.output[-2000:]
        failed = rerun(folder, stage)
        lost = differences(results(folder), snapshots.results[stage])
        if how == "killed":
            lost += [str(path) for path in folder.rglob("*.tmp")]
        if failed or lost:
            wrong.append(f"{how} at operation {at} of {last}, {loss} lost: {failed or ', '.join(lost[:5])}")
        shutil.rmtree(folder)
    REPORT.append(f"{stage}: {how} at {times} operations, lost something at {len(wrong)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("stage", STAGES)
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


def undisturbed(snapshots: Snapshots, stage: str, tmp_path: Path) -> tuple[dict[Loss, dict[str, str]], int]:
    """Digests of what a power cut at a stage's end leaves of its results, and how many operations the stage has."""
    folder = snapshots.before(stage, tmp_path / "undisturbed")

    def run_to_its_end() -> None:
        os.chdir(folder)
        disk = Disk(tmp_path / "links")
        operations = Operations(lambda number, kind, whose: disk.note(kind, whose))
        run(folder, stage)
        operations.stop()
        left = {loss: disk.after_a_cut(loss) for loss in LOSSES}
        digests = {
            loss: {name: digest(name, content) for name, content in found.items() if is_result(name)}
            for loss, found in left.items()
        }
        (tmp_path / "undisturbed.json").write_text(json.dumps([digests, operations.count]))

    ended = forked(run_to_its_end)
    assert ended.status == 0, ended.output[-2000:]
    left, count = json.loads((tmp_path / "undisturbed.json").read_text())
    return left, count


def is_result(name: str) -> bool:
    return name.startswith(tuple(f"{folder}/" for folder in RESULTS)) and not name.endswith(".lock")


def die_at(folder: Path, stage: str, at: int, loss: Loss | None) -> None:
    """Run a stage in this process and die before one of its operations: by a power cut with a loss, or by kill -9.

    A kill in `os.fsync` leaves half of the file.
    """
    os.chdir(folder)
    disk = Disk(folder.with_name(f"{folder.name}-links")) if loss else None

    def before(number: int, kind: str, whose: object) -> None:
        if number == at:
            if disk and loss:
                disk.cut(loss)
            elif is_file(whose):
                os.truncate(f"/proc/self/fd/{whose}", os.fstat(whose).st_size // 2)
            kill()
        if disk:
            disk.note(kind, whose)

    Operations(before)
    run(folder, stage)


TARGETS = {
    "plan": "plan", "ingest@qmsum": "ingest", "backbone@tiny-llama": "backbone", "prepare@qmsum": "prepare",
    "partition@domains": "partition", "encode@domains": "encode", "train@fedselectkd": "train",
    "predict@fedselectkd": "predict", "evaluate@fedselectkd": "evaluate", "analyze": "analyze", "report": "report",
}  # fmt: skip
"""Target of `dvc repro` -> the target after it that brings all runs to the same stage."""
Repro = tuple[Workspace, float, dict[str, str]]
"""The workspace before a target, the seconds that it takes, and the digests of its results."""


@pytest.fixture(scope="module")
def repros(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Repro]:
    folder = tmp_path_factory.mktemp("repros")
    workspace, found = Workspace.laid(folder / "made", **PARAMS), {}
    for target, after in TARGETS.items():
        before, began = workspace.copied(folder / target), time.monotonic()
        workspace.repro(target)
        found[target] = before, time.monotonic() - began, results(workspace.folder)
        workspace.repro(after)
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_dvc_repro_killed_at_a_random_moment_ends_with_the_same_bytes(
    repros: dict[str, Repro], target: str, tmp_path: Path
) -> None:
    draw = random.Random(f"{SEED} {target}")
    before, seconds, wanted = repros[target]
    for number in range(REPROS):
        which, share = draw.choice(("all of it", "DVC alone", "the stage alone")), draw.uniform(0.2, 0.95)
        workspace = repro_killed(before, target, tmp_path / str(number), which, share * seconds)
        workspace.pipeline("mend")  # as `make` does before every `dvc repro`
        done = workspace.run("dvc", "repro", target, ok=False)
        lost = differences(results(workspace.folder), wanted)
        assert not done.returncode, f"{which} killed at {share:.2f}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert not lost, f"{which} killed at {share:.2f}: {lost[:5]}"
        shutil.rmtree(workspace.folder)
        REPORT.append(f"dvc repro {target}: {which} killed at {share:.2f} of its time; the same bytes")


def repro_killed(before: Workspace, target: str, at: Path, which: str, seconds: float) -> Workspace:
    """A workspace in which `dvc repro` was killed after some seconds; after fewer if it had ended by then."""
    workspace = before.copied(at)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["dvc", "repro", target], cwd=at, env=workspace.env, start_new_session=True, **quiet)
    time.sleep(seconds)
    if process.poll() is not None:
        shutil.rmtree(at)
        return repro_killed(before, target, at, which, seconds * 0.7)
    children = psutil.Process(process.pid).children(recursive=True)
    if which == "all of it":
        os.killpg(process.pid, signal.SIGKILL)
    for one in children if which == "the stage alone" and children else [process]:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()
    return workspace
