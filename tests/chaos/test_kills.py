"""kill -9 at 200 moments: one plain re-run ends with the same bytes, and nothing half-made is taken for whole.

180 fall on file operations of the stages, which run in children of this process; 20 on random moments of `dvc repro`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from forked import forked, killed
from ladder import PARAMS, Ladder, differences, rerun, results, run
from operations import Operations, is_file
from workspaces import Workspace

KILLS = {
    "plan": 16,
    "ingest": 16,
    "backbone": 12,
    "prepare": 16,
    "partition": 10,
    "encode": 20,
    "train": 40,
    "generate": 18,
    "evaluate": 16,
    "main": 16,
}
"""Stage -> at so many of its file operations, evenly spread."""
REPROS = 20
SEED = 20
BROKEN: dict[str, Counter[str]] = {}
"""Stage -> how often what was found after a kill, and what was lost after the re-run."""


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    return Ladder(tmp_path_factory.mktemp("ladder"))


@pytest.fixture(scope="module", autouse=True)
def told(pytestconfig: pytest.Config) -> Iterator[None]:
    """What was broken, how often, and what was lost, printed at the end."""
    BROKEN.clear()
    yield
    kills, lost = (sum(found[name] for found in BROKEN.values()) for name in ("kills", "lost"))
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print()
        for stage, found in BROKEN.items():
            print(f"{stage:24} " + ", ".join(f"{name} {count}" for name, count in found.items()))
        print(f"kills: lost {lost or 'nothing'}; whole again {kills - lost} of {kills}")


@pytest.mark.parametrize("stage", KILLS)
def test_a_stage_killed_at_a_file_operation_ends_with_the_same_bytes(
    ladder: Ladder, stage: str, tmp_path: Path
) -> None:
    last = _count(ladder.before(stage, tmp_path / "counted"), stage)
    assert last >= KILLS[stage], "fewer operations than kills"
    found = BROKEN.setdefault(stage, Counter(kills=0))
    wrong = []
    for place in range(KILLS[stage]):
        at = 1 + place * last // KILLS[stage]
        folder = ladder.before(stage, tmp_path / str(at))
        before = results(folder)
        ended = forked(lambda folder=folder, at=at: _killed_at(folder, stage, at))
        assert ended.status == -signal.SIGKILL, ended.said[-2000:]
        found.update(kills=1, **_harm(folder, before, ladder.made[stage]))
        failed = rerun(folder, stage)
        lost = differences(results(folder), ladder.made[stage]) + [str(path) for path in folder.rglob("*.tmp")]
        if failed or lost:
            found["lost"] += 1
            wrong.append(f"killed at operation {at} of {last}: {failed or ', '.join(lost[:5])}")
        shutil.rmtree(folder)
    assert not wrong, "\n".join(wrong)


def _count(folder: Path, stage: str) -> int:
    """How many file operations a stage has, left alone."""
    counted = folder / "counted"

    def left_alone() -> None:
        os.chdir(folder)
        operations = Operations(lambda number, kind, whose: None)
        run(folder, stage)
        operations.stop()
        counted.write_text(str(operations.count))

    ended = forked(left_alone)
    assert ended.status == 0, ended.said[-2000:]
    return int(counted.read_text())


def _killed_at(folder: Path, stage: str, at: int) -> None:
    def reached(number: int, kind: str, whose: object) -> None:
        if number == at:
            if is_file(whose):  # in the midst of writing
                os.truncate(f"/proc/self/fd/{whose}", os.fstat(whose).st_size // 2)
            killed()

    os.chdir(folder)
    Operations(reached)
    run(folder, stage)


def _harm(folder: Path, before: dict[str, str], made: dict[str, str]) -> dict[str, int]:
    """What a kill left that is neither the stage's input nor its output."""
    found = results(folder)
    journals = len(list(folder.rglob("*.sqlite-journal")))
    temporaries = sum(name.endswith(".tmp") for name in found)
    harmed = {
        "outputs half-made": bool(differences(found, before) and differences(found, made)),
        "temporaries left": bool(temporaries),
        "SQLite journals left": bool(journals),
    }
    return {name: 1 for name, is_so in harmed.items() if is_so}


TARGETS = {
    "plan": "plan",
    "ingest@qmsum": "ingest",
    "backbone": "backbone",
    "prepare@qmsum": "prepare",
    "partition": "partition",
    "encode": "encode",
    "train@fedselectkd-1": "train",
    "generate@fedselectkd-1": "generate",
    "evaluate@fedselectkd-1": "evaluate",
    "main": "main",
}
"""Stage of DVC's -> what is asked of DVC after it, that all runs come as far."""


class Repros:
    """Workspaces before each target of `dvc repro`, the seconds that it takes, and what it leaves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seconds: dict[str, float] = {}
        self.made: dict[str, dict[str, str]] = {}
        workspace = Workspace.laid(folder / "made", **PARAMS)
        for target, after in TARGETS.items():
            workspace.copied(folder / target)
            began = time.monotonic()
            workspace.repro(target)
            self.seconds[target] = time.monotonic() - began
            self.made[target] = results(workspace.folder)
            workspace.repro(after)

    def before(self, target: str, at: Path) -> Workspace:
        return Workspace(self._folder / target).copied(at)


@pytest.fixture(scope="module")
def repros(tmp_path_factory: pytest.TempPathFactory) -> Repros:
    return Repros(tmp_path_factory.mktemp("repros"))


@pytest.mark.parametrize("target", TARGETS)
def test_dvc_repro_killed_at_a_random_moment_ends_with_the_same_bytes(
    repros: Repros, target: str, tmp_path: Path
) -> None:
    draw = random.Random(f"{SEED} {target}")
    found = BROKEN.setdefault(f"dvc repro {target}", Counter(kills=0))
    for number in range(REPROS // len(TARGETS)):
        whom, share = draw.choice(WHOM), draw.uniform(0.2, 0.95)
        workspace = _repro_killed(repros, target, tmp_path / str(number), whom, share)
        found.update({"kills": 1, f"of {whom}": 1})
        workspace.pipeline("mend")  # as `make` does before every `dvc repro`
        done = workspace.run("dvc", "repro", target, ok=False)
        lost = differences(results(workspace.folder), repros.made[target])
        found["lost"] += bool(done.returncode or lost)
        assert not done.returncode, f"{whom} killed at {share:.2f}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert not lost, f"{whom} killed at {share:.2f}: {lost[:5]}"
        shutil.rmtree(workspace.folder)


WHOM = ("all of it", "DVC alone", "the stage alone")


def _repro_killed(repros: Repros, target: str, at: Path, whom: str, share: float) -> Workspace:
    """A workspace in which `dvc repro` was killed after a share of its time; sooner where it was faster than that."""
    workspace = repros.before(target, at)
    process = subprocess.Popen(
        ["dvc", "repro", target],
        cwd=workspace.folder,
        env=workspace.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(share * repros.seconds[target])
    if process.poll() is None:
        _kill(process, whom)
        process.wait()
        return workspace
    shutil.rmtree(at)
    return _repro_killed(repros, target, at, whom, share * 0.7)


def _kill(process: subprocess.Popen[bytes], whom: str) -> None:
    below = psutil.Process(process.pid).children(recursive=True)
    if whom == "all of it":
        os.killpg(process.pid, signal.SIGKILL)
    elif whom == "DVC alone" or not below:
        process.kill()
    else:
        for child in below:
            with suppress(psutil.NoSuchProcess):
                child.kill()
