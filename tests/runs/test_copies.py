"""Copies of the workspace: laid out for `make repro-full` and `make try`, and what is taken over from the first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from workspaces import SMALL, Workspace

from pipeline.errors import QuorumError
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import read_params
from pipeline.runs import copies
from pipeline.workspace import layout

COMMITTER = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WHOLE = SMALL | {"train_fraction": None}


@pytest.fixture
def here(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Inside a workspace of one's own, as the command runs."""
    monkeypatch.chdir(workspace.folder)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    for name, value in COMMITTER.items():
        monkeypatch.setenv(name, value)
    workspace.params(**WHOLE)
    return workspace


def test_a_copy_has_the_changes_that_are_not_committed_at_scale_full(here: Workspace) -> None:
    here.params(rounds=7)
    copies.lay_full()
    params = read_params(layout.full_copy() / "params.yaml")
    assert (params.scale, params.rounds) == ("full", 7)
    (here.folder / "README.md").write_text("changed")
    text = (here.folder / "params.yaml").read_text(encoding="utf-8")
    (here.folder / "params.yaml").write_text(text.replace("scale: laptop", 'scale: "laptop"  # mine'), encoding="utf-8")
    copies.lay_full()
    assert read_params(layout.full_copy() / "params.yaml").scale == "full"
    assert (layout.full_copy() / "README.md").read_text() == "changed"


def test_a_copy_at_scale_full_keeps_its_cache_where_the_original_has_it(here: Workspace) -> None:
    copies.lay_full()
    done = subprocess.run(
        ["dvc", "cache", "dir"], cwd=layout.full_copy(), env=here.env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(here.folder / ".dvc" / "cache")


def test_a_copy_to_try_is_of_the_sample_and_random_weights(here: Workspace) -> None:
    """Whatever the workspace has; its rounds and runs are the workspace's."""
    here.params(data_source="auto", backbone="smollm2-135m", max_tokens=128, rounds=7)
    copies.lay_try()
    params = read_params(layout.try_copy() / "params.yaml")
    assert (params.data_source, params.backbone, params.max_tokens) == ("sample", "tiny-llama", 24)
    assert (params.scale, params.rounds, set(params.runs)) == ("laptop", 7, set(SMALL["runs"]))
    assert read_params(here.folder / "params.yaml").backbone == "smollm2-135m", "the workspace's own file stays"


def test_a_copy_begins_with_nothing_made_and_keeps_what_it_has_made(here: Workspace) -> None:
    """The original's dvc.lock is of other knobs; the copy's own says where it stopped."""
    (here.folder / "dvc.lock").write_text("schema: '2.0'\nstages: {}\n")
    here.commit()
    copies.lay_try()
    lock = layout.try_copy() / "dvc.lock"
    assert not lock.exists()
    lock.write_text("the copy's own")
    copies.lay_try()
    assert lock.read_text() == "the copy's own"


@pytest.mark.parametrize(("value", "refused"), [(0.5, True), (1.0, True), (None, False)])
def test_part_of_the_training_examples_is_refused(here: Workspace, value: float | None, refused: bool) -> None:
    here.params(train_fraction=value)
    if refused:
        with pytest.raises(QuorumError, match="set train_fraction: null"):
            copies.lay_full()
    else:
        copies.lay_full()


def test_a_wrong_params_file_is_found_before_the_copy(here: Workspace) -> None:
    here.params(tau=-1)
    with pytest.raises(QuorumError, match="tau: is a number of nats"):
        copies.lay_try()


def test_a_params_file_without_the_line_is_refused(here: Workspace) -> None:
    """As `{scale: laptop, ...}` in one line has none."""
    text = (here.folder / "params.yaml").read_text(encoding="utf-8")
    (here.folder / "params.yaml").write_text(text.replace("scale: laptop", '"scale": laptop'), encoding="utf-8")
    with pytest.raises(QuorumError, match="has no line `scale:`; restore it from git"):
        copies.lay_full()


def test_a_folder_that_is_no_copy_is_refused(here: Workspace) -> None:
    layout.try_copy().mkdir(parents=True, exist_ok=True)
    git, away = layout.try_copy() / ".git", layout.try_copy() / ".away"
    if git.exists():
        git.rename(away)
    with pytest.raises(QuorumError, match="is no copy of the workspace; delete it"):
        copies.lay_try()
    if away.exists():
        away.rename(git)
    else:
        layout.try_copy().rmdir()


def test_a_module_that_git_does_not_know_is_named(here: Workspace) -> None:
    mine = here.folder / "pipeline" / "federated" / "mine.py"
    mine.write_text("")
    try:
        with pytest.raises(QuorumError, match=r"pipeline/federated/mine.py: git does not know it"):
            copies.lay_full()
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
        layout.all_metrics("main"): {},
        layout.seed_metrics("main", 1): {},
    }
    for path, content in files.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(json.dumps(content))
    for path in copies.TAKEN:
        if path.suffix == ".csv":
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_text("run\n")
    (copy / layout.figures("main")).mkdir(parents=True, exist_ok=True)
    return copy


def test_what_planned_runs_left_is_taken_over_at_once(here: Workspace) -> None:
    runs = {"fedavg": {"method": "AdaFedAvg"}, "fedselectkd": {"method": "AdaFedSelectKD"}}
    here.params(runs=runs)
    copies.lay_full()
    copy = finished_copy("mirror")
    (layout.FULL / "scores").mkdir(parents=True, exist_ok=True)
    (layout.FULL / "scores" / "old.json").write_text("{}")
    copies.take_over()
    taken = {path.name for path in (layout.FULL / "scores").rglob("*.json")}
    assert taken == {"fedavg-1.json", "fedselectkd-1.json"}, "neither what was there nor a run that is not planned"
    assert {path.name for path in layout.FULL.rglob("*") if path.suffix in (".csv", ".yaml")} >= {
        "params.yaml",
        "main.csv",
        "history.csv",
    }
    (copy / layout.METRICS).unlink()
    with pytest.raises(QuorumError, match=r"metrics.json: is missing"):
        copies.take_over()
    assert (layout.FULL / "scores" / "main" / "fedavg-1.json").is_file(), "what was there stays"


def test_the_sample_is_not_all_of_qmsum(here: Workspace) -> None:
    copies.lay_full()
    finished_copy("sample")
    with pytest.raises(QuorumError, match="its QMSum is the made-up sample"):
        copies.take_over()
