"""Which checkpoints still have a run to wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        fingerprint="",
        training=None,
        patience=3,
        evaluate=None,
    )


def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *planned: str, written: bool) -> None:
    """A workspace that plans these runs, whose training is `key`; of them all the training is written, or none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setattr(prune, "planned_runs", lambda: [row(identity) for identity in planned])
    monkeypatch.setattr(prune, "planned_key", lambda identity: "key")
    monkeypatch.setattr(prune, "is_as_planned", lambda identity: written)
    monkeypatch.setattr(prune, "_shared", lambda of: "T")


@pytest.mark.parametrize(("trainings", "stays"), [({"a": "T", "b": "T"}, True), ({"a": "T", "b": "U"}, False)])
def test_a_finished_checkpoint_waits_for_the_same_training_under_a_later_name(
    trainings: dict[str, str], stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`main/a` is encoded and written, `more/b` is not encoded yet."""
    plan(tmp_path, monkeypatch, "main/a", "more/b", written=True)
    monkeypatch.setattr(prune, "_shared", lambda of: trainings[of.id[-1]])
    write_json(layout.encoded_index("main/a"), {})
    write_json(layout.order("train", "main/a"), {"training": "T"})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    prune.prune()
    assert (layout.checkpoints() / "key").exists() == stays


def test_what_an_unencoded_run_needs_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted `encode-more` leaves no index: its prefixes, summaries and scores would be taken for others'."""
    plan(tmp_path, monkeypatch, "more/b", written=False)
    stored = layout.store() / "ab" / "abcd.safetensors"
    write_json(stored, {})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    prune.prune(unplanned=True)
    assert "more/b is planned and not encoded" in capsys.readouterr().err
    assert stored.is_file()
    assert not (layout.checkpoints() / "key").exists(), "the checkpoint of no planned training"


@pytest.fixture
def unplanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`main/a` is encoded; there are prefixes, checkpoints and results of its plan and of another one."""
    plan(tmp_path, monkeypatch, "main/a", written=False)
    entries = [{"id": "e", "key": "mine", "tokens": 1, "source_tokens": 1}]
    write_json(layout.encoded_index("main/a"), {"clients": {"A": {"train": entries, "val": [], "test": []}}})
    for name in ("mine", "other"):
        write_json(layout.store() / "ab" / f"{name}.safetensors", {})
    for folder in (layout.generated(), layout.evaluated()):
        write_json(folder / "other.json", {})
    for training in ("key", "other"):
        write_json(layout.checkpoints() / training / "state.json", {})
        write_json(layout.round_adapter(training, 1, "A"), {})
    return tmp_path


def trainings() -> set[str]:
    """Those that have a checkpoint."""
    return {path.name for path in layout.checkpoints().iterdir() if path.is_dir()}


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("unplanned")
def test_what_only_other_plans_need_is_removed_on_request() -> None:
    """The run's own training is still to be written, so its checkpoint stays."""
    prune.prune(unplanned=True)
    assert left(layout.store()) == {"mine.safetensors"}
    assert left(layout.generated()) | left(layout.evaluated()) == set()
    assert trainings() == {"key"}
    assert [folder.name for folder in layout.rounds().iterdir()] == ["key"]


@pytest.mark.usefixtures("unplanned")
def test_a_prefix_that_an_experiment_has_encoded_is_not_removed() -> None:
    write_json(layout.work() / "plans" / "experiments" / "mine" / layout.last_plan().name, {})
    index = {"clients": {"A": {"train": [{"key": "other"}], "val": [], "test": []}}}
    write_json(layout.home() / "experiments" / "mine" / layout.encoded_index("more/b"), index)
    prune.prune(unplanned=True)
    assert len(left(layout.store())) == 2


@pytest.mark.usefixtures("unplanned")
@pytest.mark.parametrize(
    ("written", "checkpoints"), [("", {"key", "theirs"}), ("theirs", {"key"}), ("old", {"key", "theirs"})]
)
def test_what_an_experiment_trains_and_has_trained_stays(written: str, checkpoints: set[str]) -> None:
    """The models of its rounds stay, too; its finished training may be of an earlier plan."""
    there = layout.home() / "experiments" / "mine"
    write_json(layout.work() / "plans" / "experiments" / "mine" / layout.last_plan().name, {})
    index: dict[str, Any] = {"clients": {}}
    write_json(there / layout.encoded_index("main/a"), index)
    write_json(there / layout.order("train", "main/a"), {"training": {"rounds": 12}})
    names = {"theirs": sha256_json([{"rounds": 12}, index]), "old": "old", "key": "key"}
    for key in names.values():
        write_json(layout.checkpoints() / key / "state.json", {})
        write_json(layout.round_adapter(key, 1, "A"), {})
    if written:
        write_json(there / layout.trained_as("main/a"), {"training": names[written]})
    prune.prune(unplanned=True)
    assert trainings() == {names[name] for name in checkpoints}
    rounds = {folder.name for folder in layout.rounds().iterdir()}
    assert rounds == {"key", names["theirs"]} | ({"old"} if written == "old" else set())


@pytest.fixture
def texts(unplanned: Path) -> Path:
    """An experiment on labelled texts, encoded, with one run of seeds 1 and 2."""
    write_json(layout.work() / "plans" / "experiments" / "texts" / layout.last_plan().name, {})
    there = layout.home() / "experiments" / "texts"
    write_json(
        there / layout.encoded_texts("news"), {"classes": [], "views": {"v": {"entries": {"t": [["other", 1]]}}}}
    )
    write_json(there / layout.order("train", "fedavg"), {"left_out": False, "seeds": [1, 2]})
    write_json(there / layout.trained_as(layout.run_on_texts("fedavg", 1)), {"training": "a"})
    return there


@pytest.mark.usefixtures("texts")
def test_a_text_that_an_experiment_has_encoded_is_not_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor a checkpoint that may be that of its second seed."""
    prune.prune(unplanned=True)
    assert len(left(layout.store())) == 2
    assert trainings() == {"key", "other"}
    assert "has a training to finish" in capsys.readouterr().err


def test_checkpoints_of_no_plan_go_when_texts_are_trained_on(texts: Path) -> None:
    write_json(texts / layout.trained_as(layout.run_on_texts("fedavg", 2)), {"training": "b"})
    prune.prune(unplanned=True)
    assert trainings() == {"key"}


@pytest.mark.usefixtures("unplanned")
def test_what_other_plans_need_stays_by_default() -> None:
    prune.prune()
    assert len(left(layout.store())) == 2
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


@pytest.mark.parametrize(("done", "stays"), [(False, True), (True, False)])
def test_a_checkpoint_waits_for_the_same_training_in_an_experiment(
    done: bool, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it is written. The experiment keeps its trainings in the same place and plans this for its other model."""
    plan(tmp_path, monkeypatch, "more/a", written=True)
    write_json(layout.encoded_index("more/a"), {})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    experiment = tmp_path / "experiments" / "mine"
    write_json(layout.order("train", "more/a"), {"training": "T", "evaluate": "local"})
    write_json(experiment / layout.order("train", "more/b"), {"training": "T", "evaluate": "server"})
    write_json(experiment / layout.order("train", "more/c"), {"training": "U", "evaluate": "local"})
    for where in (layout.last_plan(), layout.work() / "plans" / "experiments" / "mine" / "plan.json"):
        write_json(where, {})
    if done:
        write_json(experiment / layout.trained_as("more/b"), {"training": "key"})
    prune.prune_training("more/a")
    assert (trainings() == {"key"}) == stays


def test_the_untrained_backbone_has_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan(tmp_path, monkeypatch, written=False)
    monkeypatch.setattr(prune, "planned_key", lambda identity: None)
    write_json(layout.order("train", "main/zeroshot"), {"training": None})
    write_json(layout.checkpoints() / "key" / "state.json", {})
    prune.prune_training("main/zeroshot")
    assert trainings() == {"key"}


def test_a_database_is_removed_before_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in between, the journal alone would be no harm; a database without it might be half of a round."""
    monkeypatch.chdir(tmp_path)
    folder = layout.checkpoints() / "training"
    for name in ("checkpoint.sqlite-journal", "checkpoint.sqlite"):
        write_json(folder / name, {})
    gone: list[str] = []
    monkeypatch.setattr(prune, "_remove", lambda files: gone.extend(path.name for path in files) or [])
    with pytest.raises(OSError, match="not empty"):
        prune.remove_checkpoints([folder])
    assert gone == ["checkpoint.sqlite", "checkpoint.sqlite-journal"]
