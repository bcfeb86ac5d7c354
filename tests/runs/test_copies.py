"""`make repro-full`: the copy of the workspace, and what is taken over from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Workspace

from pipeline.errors import QuorumError
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import read_params
from pipeline.runs import full
from pipeline.workspace import layout

COMMITTER = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def here(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Inside a workspace of one's own, as the command runs."""
    monkeypatch.chdir(workspace.folder)
    for name, value in COMMITTER.items():
        monkeypatch.setenv(name, value)
    workspace.params(train_fraction=None)
    return workspace


def test_a_copy_has_the_changes_that_are_not_committed_at_scale_full(here: Workspace) -> None:
    here.params(train_fraction=None, rounds=7)
    full.lay_copy()
    params = read_params(layout.full_copy() / "params.yaml")
    assert (params.scale, params.rounds) == ("full", 7)
    (here.folder / "README.md").write_text("changed")
    text = (here.folder / "params.yaml").read_text(encoding="utf-8")
    (here.folder / "params.yaml").write_text(text.replace("scale: laptop", 'scale: "laptop"  # mine'), encoding="utf-8")
    full.lay_copy()
    assert read_params(layout.full_copy() / "params.yaml").scale == "full"
    assert (layout.full_copy() / "README.md").read_text() == "changed"


def test_part_of_the_training_examples_is_refused(here: Workspace) -> None:
    here.params(train_fraction=0.5)
    with pytest.raises(QuorumError, match="set train_fraction: null"):
        full.lay_copy()


def test_a_module_that_git_does_not_know_is_named(here: Workspace) -> None:
    mine = here.folder / "pipeline" / "federated" / "mine.py"
    mine.write_text("")
    try:
        with pytest.raises(QuorumError, match=r"pipeline/federated/mine.py: git does not know it"):
            full.lay_copy()
    finally:
        mine.unlink()


def finished_copy(source: str) -> Path:
    """As a finished run of two methods leaves it, and a score of another one that git had."""
    copy = layout.full_copy()
    orders = resolve(read_params(copy / "params.yaml"))
    files = {
        layout.source_record("qmsum"): {"source": source, "commit": None},
        layout.order("main"): orders["main.json"],
        **{layout.SCORES / "main" / f"{name}-1.json": {"of": name} for name in ("fedavg", "fedselectkd", "dropped")},
        layout.METRICS: {},
        layout.REPORTS / "metrics" / "main" / "seed-1.json": {},
    }
    for path, content in files.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(json.dumps(content))
    for path in full.TAKEN:
        if path.suffix == ".csv":
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_text("run\n")
    (copy / layout.figures("main")).mkdir(parents=True, exist_ok=True)
    return copy


def test_what_planned_runs_left_is_taken_over_at_once(here: Workspace) -> None:
    runs = {"fedavg": {"method": "AdaFedAvg"}, "fedselectkd": {"method": "AdaFedSelectKD"}}
    here.params(train_fraction=None, runs=runs)
    full.lay_copy()
    copy = finished_copy("mirror")
    (layout.FULL / "scores").mkdir(parents=True, exist_ok=True)
    (layout.FULL / "scores" / "old.json").write_text("{}")
    full.take_over()
    taken = {path.name for path in (layout.FULL / "scores").rglob("*.json")}
    assert taken == {"fedavg-1.json", "fedselectkd-1.json"}, "neither what was there nor a run that is not planned"
    assert (layout.FULL / "README.md").is_file()
    (copy / layout.METRICS).unlink()
    with pytest.raises(QuorumError, match=r"metrics.json: is missing"):
        full.take_over()
    assert (layout.FULL / "scores" / "main" / "fedavg-1.json").is_file(), "what was there stays"


def test_the_sample_is_not_all_of_qmsum(here: Workspace) -> None:
    full.lay_copy()
    finished_copy("sample")
    with pytest.raises(QuorumError, match="its QMSum is the made-up sample"):
        full.take_over()
