"""Which files of work/ still have a run to wait for."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_results import run_of

from pipeline.errors import QuorumError
from pipeline.plan.orders import RunRow
from pipeline.runs import prune
from pipeline.runs.prune import remove_unless_awaited
from pipeline.workspace import layout
from pipeline.workspace.files import locked, write_json

Plan = Callable[..., Path]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """(Folder, run=key of its training, …) -> an encoded workspace that plans these runs; without a key it is not."""
    plans: dict[Path, dict[str, str | None]] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))

    def lay(folder: str = ".", **keys: str | None) -> Path:
        there = tmp_path / folder
        plans[there] = keys
        name = "mine" if folder == "." else "theirs"
        write_json(there / layout.encoded("s", "a"), {"entries": {"e": [[name, 1, 1]]}})
        write_json(layout.work() / "plans" / folder / layout.last_plan().name, {})
        return there

    def row(run_id: str) -> RunRow:
        name = run_id.partition("/")[0]
        return run_of(name, training=plans[Path.cwd()][name])[0]

    def key_of(run_id: str) -> str:
        if (key := plans[Path.cwd()][run_id.partition("/")[0]]) is None:
            raise QuorumError("data/encoded/s: is missing")
        return key

    monkeypatch.setattr(prune, "planned_runs", lambda: [*map(row, plans[Path.cwd()])])
    monkeypatch.setattr(prune, "planned_run", row)
    monkeypatch.setattr(prune, "planned_key", key_of)
    monkeypatch.setattr(prune, "jobs_of", lambda run_id: [SimpleNamespace(path=Path("mine.json"))])
    # Run a is encoded and its training `key` is not finished; the files `mine` are those that the root's plan needs.
    lay(a="key")
    for name in ("mine", "theirs"):
        write_json(layout.store() / f"ab/{name}.safetensors", {})
        write_json(layout.generated() / f"{name}.json", {})
    for key in ("key", "other"):
        checkpoint(key)
        write_json(layout.round_adapter(key, 1, "A"), {})
    return lay


def train(run: str, key: str, there: Path = Path()) -> None:
    """A run's models are of a training."""
    write_json(there / layout.trained_as(layout.run_id(run, 1)), {"training": key})


def checkpoint(key: str) -> None:
    write_json(layout.checkpoints() / key / "state.json", {})


def trainings() -> set[str]:
    """Those that have a checkpoint."""
    return {path.name for path in layout.checkpoints().iterdir() if path.is_dir()}


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("other", "stays"), [("key", True), ("another", False)])
def test_a_checkpoint_waits_for_the_same_training_under_another_name(plan: Plan, other: str, stays: bool) -> None:
    """Run a is trained, b is not yet."""
    plan(a="key", b=other)
    train("a", "key")
    for remove in (prune.prune, lambda: remove_unless_awaited("a/1", "key")):
        checkpoint("key")
        remove()
        assert ("key" in trainings()) == stays
    train("b", other)
    checkpoint("key")
    remove_unless_awaited("a/1", "key")
    assert trainings() == {"other"}


@pytest.mark.usefixtures("plan")
def test_what_no_plan_needs_is_removed_on_request_unless_another_process_trains_it() -> None:
    """Predictions are those of models that are there. A copy of the workspace has the lock of what it trains."""
    train("a", "old")
    prune.prune()
    assert (len(left(layout.store())), len(left(layout.generated())), len(trainings())) == (2, 2, 2)
    with locked(layout.checkpoint_lock("other")):
        prune.prune(unplanned=True)
        assert trainings() == {"key", "other"}
    prune.prune(unplanned=True)
    assert (left(layout.store()), left(layout.generated())) == ({"mine.safetensors"}, {"mine.json"})
    assert trainings() == {folder.name for folder in layout.rounds().iterdir()} == {"key"}


@pytest.mark.parametrize(("finished", "checkpoints"), [(False, {"key", "other"}), (True, {"key"})])
def test_what_an_experiment_needs_stays(plan: Plan, finished: bool, checkpoints: set[str]) -> None:
    """The models of all its rounds stay, too; the checkpoint of its finished training does not."""
    there = plan("experiments/mine", t="other")
    if finished:
        train("t", "other", there)
    prune.prune(unplanned=True)
    assert (len(left(layout.store())), trainings()) == (2, checkpoints)
    assert {folder.name for folder in layout.rounds().iterdir()} == {"key", "other"}


def test_what_an_unencoded_setting_needs_is_not_known(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    """Its prefixes, predictions and checkpoints would be taken for others'."""
    plan("experiments/mine", b=None)
    prune.prune(unplanned=True)
    assert "experiments/mine is not encoded: data/encoded/s: is missing" in capsys.readouterr().err
    assert len(left(layout.store())) == len(left(layout.generated())) == len(trainings()) == 2


def test_a_database_is_removed_before_its_journal(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in between, the journal alone would be no harm; a database without it might be half of a round."""
    folder = layout.checkpoints() / "training"
    for name in ("checkpoint.sqlite-journal", "checkpoint.sqlite"):
        write_json(folder / name, {})
    gone: list[Any] = []
    monkeypatch.setattr(prune, "_remove", lambda files: gone.extend(path.name for path in files) or 0)
    with pytest.raises(OSError, match="not empty"):
        prune.remove_checkpoints([folder])
    assert gone == ["checkpoint.sqlite", "checkpoint.sqlite-journal"]
