"""Missing trials of tuning run once, also with two processes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pipeline.runs.trials import make_missing
from pipeline.workspace import layout
from pipeline.workspace.files import locked, write_text


def test_a_trial_with_a_file_does_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finished, missing = tmp_path / "a.json", tmp_path / "b.json"
    write_text(finished, "done before")
    make_missing({path: lambda path: write_text(path, "made") for path in (finished, missing)})
    assert (finished.read_text(), missing.read_text()) == ("done before", "made")


def test_a_trial_that_another_process_is_at_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process runs b and c meanwhile, and finds a finished at the end."""
    monkeypatch.chdir(tmp_path)
    paths = {name: tmp_path / f"{name}.json" for name in "abc"}
    made: list[str] = []

    def make(path: Path) -> None:
        made.append(path.stem)
        write_text(path, "made here")
        if path == paths["c"]:
            others.release()

    others = threading.Semaphore(0)
    is_locked = threading.Event()

    def another() -> None:
        with locked(layout.trial_lock(paths["a"])):
            is_locked.set()
            others.acquire()
            write_text(paths["a"], "made there")

    thread = threading.Thread(target=another)
    thread.start()
    assert is_locked.wait(10)
    make_missing(dict.fromkeys(paths.values(), make))
    thread.join()
    assert made == ["b", "c"]
    assert paths["a"].read_text() == "made there"
