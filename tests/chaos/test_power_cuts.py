"""A power cut at any moment: what was not flushed is gone, and one plain re-run ends with the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from disk import Disk, Loss
from forked import forked, killed
from ladder import RESULTS, STAGES, Ladder, differences, rerun, results, run
from operations import Operations

from pipeline.workspace import files

CUTS = 6
"""Moments of every stage, evenly spread, at which the power is cut."""
LOSSES: tuple[Loss, ...] = ("names", "contents")


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    return Ladder(tmp_path_factory.mktemp("ladder"))


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_has_ended_loses_nothing(ladder: Ladder, stage: str, tmp_path: Path) -> None:
    """DVC then takes its outputs into the cache, by links: what they name must be whole."""
    kept, _ = _ended(ladder, stage, tmp_path)
    for loss in LOSSES:
        assert not differences(kept[loss], ladder.made[stage]), f"what is gone are {loss}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_whose_power_was_cut_ends_with_the_same_bytes(ladder: Ladder, stage: str, tmp_path: Path) -> None:
    _, last = _ended(ladder, stage, tmp_path)
    wrong = []
    for place in range(CUTS):
        at, loss = 1 + place * last // CUTS, LOSSES[place % 2]
        folder = ladder.before(stage, tmp_path / f"{at}")
        ended = forked(lambda folder=folder, at=at, loss=loss: _cut_at(folder, stage, at, loss))
        assert ended.status == -9, ended.said[-2000:]
        failed = rerun(folder, stage)
        lost = differences(results(folder), ladder.made[stage])
        if failed or lost:
            wrong.append(f"cut at operation {at} of {last}, {loss} lost: {failed or ', '.join(lost[:5])}")
        shutil.rmtree(folder)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_writer_that_does_not_flush_is_caught(
    ladder: Ladder, tmp_path: Path, loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else these tests would find nothing."""
    monkeypatch.setattr(files, "flush", lambda path: None)
    kept, _ = _ended(ladder, "plan", tmp_path)
    assert differences(kept[loss], ladder.made["plan"])


def _ended(ladder: Ladder, stage: str, tmp_path: Path) -> tuple[dict[Loss, dict[str, str]], int]:
    """Digests of what is left of a stage's results if the power is cut at its end; how many operations it had."""
    folder = ladder.before(stage, tmp_path / "ended")

    def to_its_end() -> None:
        disk, operations = _watched(folder, tmp_path / "aside")
        run(folder, stage)
        operations.stop()
        kept = {loss: _digests(disk.after_a_cut(loss)) for loss in LOSSES}
        (tmp_path / "kept.json").write_text(json.dumps([kept, operations.count]))

    ended = forked(to_its_end)
    assert ended.status == 0, ended.said[-2000:]
    kept, count = json.loads((tmp_path / "kept.json").read_text())
    return kept, count


def _cut_at(folder: Path, stage: str, at: int, loss: Loss) -> None:
    disk, operations = _watched(folder, folder.with_name(f"{at}-aside"), at, loss)
    run(folder, stage)
    operations.stop()
    disk.cut(loss)
    killed()


def _watched(folder: Path, aside: Path, at: int = 0, loss: Loss = "names") -> tuple[Disk, Operations]:
    """This process at work in a folder, with a disk below it whose power is cut before an operation."""
    os.chdir(folder)
    disk = Disk(aside)

    def told(number: int, kind: str, whose: object) -> None:
        if number == at:
            disk.cut(loss)
            killed()
        if kind == "fsync" and isinstance(whose, int):
            disk.flushed(whose)
        elif kind == "committed" and isinstance(whose, sqlite3.Connection):
            disk.committed(whose)

    return disk, Operations(told)


def _digests(kept: dict[str, bytes]) -> dict[str, str]:
    """As `results` has them."""
    return {
        name: hashlib.sha256(content).hexdigest()
        for name, content in kept.items()
        if name.startswith(tuple(f"{one}/" for one in RESULTS)) and not name.endswith(".lock")
    }
