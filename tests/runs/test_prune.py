"""Which checkpoints still have a run to wait for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.plan.orders import RunRow
from pipeline.runs import prune
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def row(identity: str) -> RunRow:
    return RunRow(
        id=identity,
        name="x",
        seed=1,
        method="AdaFedAvg",
        kind="AdaFedAvg",
        setting="s",
        spec="",
        training=None,
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
