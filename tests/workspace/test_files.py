"""Files: nothing half-written, also when the disk is full; tables as CSV; and progress in a pipe."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from conftest import ROOT

from pipeline.errors import QuorumError
from pipeline.workspace import files
from pipeline.workspace.files import copy_tree, locked, read_json, read_jsonl, replacing, write_jsonl, write_text
from pipeline.workspace.progress import progress
from pipeline.workspace.tables import read_table, write_table


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what the disk is made to take, and `->` where a file gets its name, in their order."""
    order: list[str] = []
    flush, replace = os.fsync, os.replace

    def flushing(handle: int) -> None:
        order.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        flush(handle)

    def renamed(old: Path, new: Path) -> None:
        order.append(f"-> {new.name}")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(os, "replace", renamed)
    return order


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_text(path, "old")
    with pytest.raises(TypeError):
        write_jsonl(path, [1, object()])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """A limit on file size refuses the bytes as a full disk would."""
    script = (
        "import resource, sys; from pathlib import Path; from pipeline.workspace.files import write_bytes\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); write_bytes(Path(sys.argv[1]), b'x' * 5000)"
    )
    path = tmp_path / "f"
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"QuorumError: {path}: could not be written (File too large); free disk space" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("read", "name", "message"),
    [
        (read_json, "cut", "line 2: malformed JSON"),
        (read_json, "deep", "line 1: malformed JSON"),
        (read_json, "bytes", "not UTF-8"),
        (read_json, "missing", "is missing"),
        (read_json, ".", "could not be read"),
        (read_jsonl, "a line", "line 2: malformed JSON"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, read: Callable[[Path], object], name: str, message: str) -> None:
    for other, content in (("cut", b"{\n"), ("deep", b"[" * 100_000), ("bytes", b"\xff"), ("a line", b"1\nx\n")):
        (tmp_path / other).write_bytes(content)
    with pytest.raises(QuorumError, match=message):
        read(tmp_path / name)


def test_the_disk_has_new_folders_then_the_content_then_the_name(tmp_path: Path, flushed: list[str]) -> None:
    """The folder of a lock, too: a later write in it flushes its own name alone."""
    write_text(tmp_path / "f", "new")
    write_text(tmp_path / "a" / "b" / "f", "new")
    assert flushed == [".f.tmp", "-> f", tmp_path.name, tmp_path.name, "a", ".f.tmp", "-> f", "b"]
    with locked(tmp_path / "c" / "lock"):
        assert flushed[8:] == [tmp_path.name]


def test_a_folder_is_copied_and_flushed_with_what_is_below_it(tmp_path: Path, flushed: list[str]) -> None:
    write_text(tmp_path / "a" / "b" / "f", "x")
    write_text(tmp_path / "a" / "g", "y")
    copy_tree(tmp_path / "a", tmp_path / "c")
    assert {p.name: p.read_text() for p in (tmp_path / "c").rglob("*") if p.is_file()} == {"f": "x", "g": "y"}
    flushed.clear()
    files.flush_tree(tmp_path / "c")
    assert sorted(flushed) == sorted(["c", "b", "f", "g", tmp_path.name])


def test_what_a_killed_process_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".f.tmp").write_text("longer than what comes")
    write_text(tmp_path / "f", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"f": "new"}


def test_two_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    """Neither's content is mixed with the other's, and no temporary stays."""
    path = tmp_path / "f"
    second = Thread(target=write_text, args=(path, "second"))
    with replacing(path) as temporary:
        temporary.write_text("first")
        second.start()
        second.join(0.2)
        assert second.is_alive()
    second.join(10)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"f": "second"}


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=2+5", "'=2+5"),
        ("+1 … +2", "'+1 … +2"),
        ("\r=2", '"\'\r=2"'),
        ("'=2", "''=2"),
        ("+1.5e-3", "+1.5e-3"),
        (-0.03, "-0.03"),
        (None, ""),
        ('a, "b"\r\n=c', '"a, ""b""\r\n=c"'),
    ],
)
def test_a_text_that_begins_as_a_formula_has_an_apostrophe(value: object, cell: str, tmp_path: Path) -> None:
    """In the file alone."""
    write_table(tmp_path / "t.csv", [{"one": value, "=two": 1}])
    assert (tmp_path / "t.csv").read_bytes().decode() == f"one,'=two\n{cell},1\n"
    assert read_table(tmp_path / "t.csv") == [{"one": "" if value is None else str(value), "=two": "1"}]


def test_work_beyond_its_estimate_prints_no_further_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("train a", 4) as advance:
        for _ in range(5):
            advance(2)
    assert capsys.readouterr().err == "train a: 4/4, 0 s, about 0 s left\n"
