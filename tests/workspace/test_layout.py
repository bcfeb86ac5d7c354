"""Where everything lies: in the repository's root, in an experiment's folder, and in a copy of either."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from pipeline.workspace import layout


@pytest.mark.parametrize(
    ("base", "below", "workspace", "copy"),
    [
        (".", "", ".", False),
        (".", ".dvc/tmp/exps/one", ".", True),
        ("../..", "experiments/mine", "experiments/mine", False),
    ],
    ids=["the root", "a copy of it", "an experiment"],
)
def test_state_lies_in_the_root_and_timings_are_those_of_the_workspace(
    base: str, below: str, workspace: str, copy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dvc exp run --temp` runs in a folder below `.dvc/tmp`, and sets DVC_ROOT to where it is from."""
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / below)
    monkeypatch.setattr(layout, "BASE", Path(base))
    monkeypatch.setenv("DVC_ROOT", str(tmp_path) if copy else "")
    assert (layout.home(), layout.workspace()) == (tmp_path, Path(workspace))
    assert layout.store() == tmp_path / "work" / "store"
    assert layout.timing("train", "a") == tmp_path / "work/timings" / workspace / "train/a.json"
    assert layout.last_plan() == tmp_path / "work/plans" / workspace / "plan.json"
    assert layout.is_copy() == copy


def test_an_experiment_reads_the_roots_data_and_writes_its_own() -> None:
    """By QUORUM_BASE, the way from its folder to the root; its plan, models and reports are its own."""
    script = "from pipeline.workspace import layout as l; print(l.SAMPLE, l.examples('qmsum'), l.order('report'))"
    env = os.environ | {"QUORUM_BASE": "../..", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["../../data/sample", "data/prepared/qmsum/examples.jsonl", "data/plan/report.json"]


@pytest.mark.parametrize(
    ("named", "beside", "found"),
    [("elsewhere", True, "elsewhere"), ("", True, None), (None, True, "shared/corpora"), (None, False, None)],
)
def test_the_mirror_is_the_named_folder_or_the_one_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None, beside: bool, found: str | None
) -> None:
    """An empty name means none."""
    (tmp_path / "main").mkdir()
    if beside:
        (tmp_path / "shared" / "corpora").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "main")
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.delenv("QUORUM_MIRROR", raising=False)
    if named is not None:
        monkeypatch.setenv("QUORUM_MIRROR", named and str(tmp_path / named))
    assert layout.mirror() == (None if found is None else tmp_path / found)
