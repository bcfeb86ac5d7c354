"""DVC's own files, as a kill leaves them: cut short anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from yaml import safe_load

from pipeline.workspace.files import locked
from pipeline.workspace.mend import STAGE, mend

WHOLE = (ROOT / "dvc.lock").read_text(encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("content", ["", '{"write": {"da'])
def test_a_list_of_users_that_was_cut_short_is_removed(root: Path, content: str) -> None:
    (root / ".dvc/tmp/rwlock").write_text(content)
    mend(root)
    assert not (root / ".dvc/tmp/rwlock").exists()


def test_a_whole_list_of_users_stays(root: Path) -> None:
    (root / ".dvc/tmp/rwlock").write_text(json.dumps({"write": {}}))
    mend(root)
    assert (root / ".dvc/tmp/rwlock").exists()


def test_a_list_of_users_that_dvc_is_writing_stays(root: Path) -> None:
    (root / ".dvc/tmp/rwlock").touch()
    with locked(root / ".dvc/tmp/rwlock.lock"):
        mend(root)
    assert (root / ".dvc/tmp/rwlock").exists()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.35, 0.5, 0.77, 0.9, 0.999])
@pytest.mark.parametrize("below", ["", "experiments/long"])
def test_whole_stages_of_a_dvc_lock_that_was_cut_short_stay(root: Path, below: str, share: float) -> None:
    lock = root / below / "dvc.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    second = [found.start() for found in STAGE.finditer(WHOLE)][1]  # before it no stage is whole
    cut = WHOLE[: second + int(share * (len(WHOLE) - second))]
    lock.write_text(cut)
    stages = safe_load(WHOLE)["stages"]
    mend(root)
    kept = safe_load(lock.read_text())
    COMPILED_LOCKFILE_SCHEMA(kept)
    assert list(kept["stages"]) == list(stages)[: len(kept["stages"])]
    assert len(kept["stages"]) >= len(STAGE.findall(cut)) - 1


@pytest.mark.parametrize("content", ["", "sche", "schema: '2.0'\nstages:\n  plan:\n    cm"])
def test_a_dvc_lock_without_a_whole_stage_is_removed(root: Path, content: str) -> None:
    (root / "dvc.lock").write_text(content)
    mend(root)
    assert not (root / "dvc.lock").exists()


def test_a_whole_dvc_lock_stays_as_it_is(root: Path) -> None:
    (root / "dvc.lock").write_text(WHOLE)
    mend(root)
    assert (root / "dvc.lock").read_text() == WHOLE
