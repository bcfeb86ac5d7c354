"""DVC's own files, as a kill leaves them: cut short anywhere."""

import json
import os
from pathlib import Path

import psutil
import pytest
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from yaml import safe_load

from pipeline.workspace.files import locked
from pipeline.workspace.mend import STAGE, mend


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    return tmp_path


OWN = {"write": {"data/plan": {"pid": os.getpid(), "cmd": "dvc repro"}}}


@pytest.mark.parametrize("folder", [".dvc/tmp", ".dvc/tmp/exps", "experiments/long/.dvc/tmp"])
@pytest.mark.parametrize("content", ["", '{"write": {"da', json.dumps(OWN)], ids=["empty", "cut", "no DVC"])
def test_a_list_of_users_that_was_cut_short_or_has_no_dvc_is_removed(root: Path, folder: str, content: str) -> None:
    """This process has the id in it, and is none of DVC: as the first one in a container, after a kill there."""
    users = root / folder / "rwlock"
    users.parent.mkdir(parents=True, exist_ok=True)
    users.write_text(content)
    mend(root)
    assert not users.exists()


def test_a_list_of_users_with_a_living_dvc_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil.Process, "cmdline", lambda _: ["/opt/bin/python", "/opt/bin/dvc", "repro"])
    (root / ".dvc/tmp/rwlock").write_text(json.dumps(OWN))
    mend(root)
    assert (root / ".dvc/tmp/rwlock").exists()


def test_a_complete_list_of_users_stays_and_so_does_one_that_dvc_is_writing(root: Path) -> None:
    users = root / ".dvc/tmp/rwlock"
    users.write_text("{}")
    mend(root)
    assert users.exists()
    users.write_text("{")
    with locked(root / ".dvc/tmp/rwlock.lock"):
        mend(root)
    assert users.exists()


ENTRY = "  {0}:\n    cmd: run {0}\n    outs:\n    - path: {0}.json\n      hash: md5\n      md5: {1}\n"
LOCK = "schema: '2.0'\nstages:\n" + "".join(ENTRY.format(name, name * 32) for name in "abcd")


@pytest.mark.parametrize("below", ["", "experiments/long"])
def test_complete_stages_of_a_dvc_lock_that_was_cut_short_stay(root: Path, below: str) -> None:
    """Cut at every seventh letter of the third and the fourth, and not at all."""
    lock = root / below / "dvc.lock"
    (root / below / ".dvc").mkdir(parents=True, exist_ok=True)
    for cut in (*range(LOCK.index("  c:") + 1, len(LOCK), 7), len(LOCK)):
        lock.write_text(LOCK[:cut])
        mend(root)
        stages = safe_load(lock.read_text())
        COMPILED_LOCKFILE_SCHEMA(stages)
        assert len(stages["stages"]) >= len(STAGE.findall(LOCK[:cut])) - 1
        assert "".join(stages["stages"]) in ("ab", "abc", "abcd")
    assert lock.read_text() == LOCK


@pytest.mark.parametrize("content", ["", "sche", "schema: '2.0'\nstages:\n  plan:\n    cm"])
def test_a_dvc_lock_without_a_complete_stage_is_removed(root: Path, content: str) -> None:
    (root / "dvc.lock").write_text(content)
    mend(root)
    assert not (root / "dvc.lock").exists()
