"""Which checkpoints still have a run to wait for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.plan.orders import RunRow
from pipeline.runs import prune
from pipeline.workspace import layout
from pipeline.workspace.files import locked, sha256_json, write_json


def row(identity: str) -> RunRow:
    return RunRow(
        id=identity,
        name="x",
        seed=1,
        method="AdaFedAvg",
        part="AdaFedAvg",
        setting="s",
        orders="",
        training=None,
        patience=3,
        evaluate=None,
    )


@pytest.mark.parametrize(("trainings", "kept"), [({"a": "T", "b": "T"}, True), ({"a": "T", "b": "U"}, False)])
def test_a_finished_checkpoint_waits_for_the_same_training_under_a_later_name(
    trainings: dict[str, str], kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`main/a` is encoded and written, `more/b` is not encoded yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(prune, "planned_runs", lambda: [row("main/a"), row("more/b")])
    monkeypatch.setattr(prune, "planned_key", lambda identity: "key")
    monkeypatch.setattr(prune, "is_as_planned", lambda identity: True)
    monkeypatch.setattr(prune, "_shared", lambda of: trainings[of.id[-1]])
    write_json(layout.encoded_index("main/a"), {})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    prune.prune()
    assert (layout.checkpoints() / "key").exists() == kept


def test_what_an_unencoded_run_needs_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted `encode-more` leaves no index: its prefixes, summaries and scores would be taken for others'."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(prune, "planned_runs", lambda: [row("more/b")])
    stored = layout.store() / "ab" / "abcd.safetensors"
    write_json(stored, {})
    monkeypatch.setattr(prune, "_shared", lambda of: "T")
    write_json(layout.checkpoints() / "key" / "state.json", {})
    prune.prune(unplanned=True)
    assert "more/b is planned and not encoded" in capsys.readouterr().err
    assert stored.is_file()
    assert not (layout.checkpoints() / "key").exists(), "the checkpoint of no planned training"


@pytest.fixture
def unplanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`main/a` is encoded and written; beside its prefix, checkpoint and results lie those of another plan."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(prune, "planned_runs", lambda: [row("main/a")])
    monkeypatch.setattr(prune, "planned_key", lambda identity: "key")
    monkeypatch.setattr(prune, "is_as_planned", lambda identity: False)
    monkeypatch.setattr(prune, "_shared", lambda of: "T")
    entries = [{"id": "e", "key": "mine", "tokens": 1, "source_tokens": 1}]
    write_json(layout.encoded_index("main/a"), {"clients": {"A": {"train": entries, "val": [], "test": []}}})
    for name in ("mine", "other"):
        write_json(layout.store() / "ab" / f"{name}.safetensors", {})
        write_json(layout.store() / "ab" / f"{name}.generation.safetensors", {})
    for folder in (layout.generated(), layout.evaluated()):
        write_json(folder / "other.json", {})
    for training in ("key", "other"):
        write_json(layout.checkpoints() / training / "state.json", {})
    return tmp_path


def trainings() -> set[str]:
    """Those that have a checkpoint."""
    return {path.name for path in layout.checkpoints().iterdir() if path.is_dir()}


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("unplanned")
def test_what_only_other_plans_need_is_removed_when_asked_for() -> None:
    """The run's own training is still to be written, so its checkpoint stays."""
    prune.prune(unplanned=True)
    assert left(layout.store()) == {"mine.safetensors", "mine.generation.safetensors"}
    assert left(layout.generated()) | left(layout.evaluated()) == set()
    assert trainings() == {"key"}


@pytest.mark.usefixtures("unplanned")
def test_what_other_plans_need_stays_unless_asked_for() -> None:
    prune.prune()
    assert len(left(layout.store())) == 4
    assert left(layout.generated()) == left(layout.evaluated()) == {"other.json"}
    assert trainings() == {"key", "other"}


@pytest.mark.usefixtures("unplanned")
def test_a_checkpoint_that_somebody_trains_stays() -> None:
    """A copy of the workspace holds its lock."""
    with locked(layout.checkpoint_lock("other")):
        prune.prune(unplanned=True)
        assert (layout.checkpoints() / "other" / "state.json").is_file()
    prune.prune(unplanned=True)
    assert not (layout.checkpoints() / "other").exists()


@pytest.mark.parametrize(("done", "kept"), [(False, True), (True, False)])
def test_a_checkpoint_waits_for_the_same_training_in_an_experiment(
    done: bool, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it is written. The experiment, which keeps its trainings in the same place, plans it too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(prune, "planned_runs", lambda: [row("more/a")])
    monkeypatch.setattr(prune, "planned_key", lambda identity: "key")
    monkeypatch.setattr(prune, "is_as_planned", lambda identity: True)
    monkeypatch.setattr(prune, "_shared", lambda of: "T")
    write_json(layout.encoded_index("more/a"), {})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    order = {"training": "T"}
    write_json(layout.order("train", "more/a"), order)
    write_json(layout.last_plan(), {"train/more/a": sha256_json(order)})
    there = {"plan": "P", "train/more/b": sha256_json(order), "train/more/c": "another"}
    write_json(layout.work() / "plans" / "experiments" / "mine" / "plan.json", there)
    if done:
        write_json(tmp_path / "experiments" / "mine" / layout.trained_as("more/b"), {"training": "key"})
    prune.prune_training("more/a")
    assert (trainings() == {"key"}) == kept


def test_the_untrained_backbone_has_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(prune, "planned_runs", list)
    monkeypatch.setattr(prune, "planned_key", lambda identity: None)
    write_json(layout.order("train", "main/zeroshot"), {"training": None})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    prune.prune_training("main/zeroshot")
    assert trainings() == {"key"}
