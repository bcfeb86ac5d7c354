"""Files: nothing half-written, also when the disk is full."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from pipeline.errors import QuorumError
from pipeline.workspace.files import read_json, read_jsonl, replacing, write_json, write_jsonl, write_text


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_text(path, "old")
    with pytest.raises(TypeError):
        write_jsonl(path, [1, object()])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=r"No space left on device.*free disk space"), replacing(tmp_path / "f"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_for_real(tmp_path: Path) -> None:
    """A limit on file size refuses the bytes as a full disk would."""
    script = (
        "import resource, sys; from pathlib import Path; from pipeline.workspace.files import write_bytes\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); write_bytes(Path(sys.argv[1]), b'x' * 5000)"
    )
    path = tmp_path / "f"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "QuorumError" in done.stderr
    assert f"{path}: could not be written (File too large)" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"), [(b"{", "line 1: malformed JSON"), (b"\xff", "not UTF-8"), (None, "is missing")]
)
def test_a_json_file_that_is_wrong_is_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "f.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuorumError, match=message):
        read_json(path)


def test_a_bad_line_is_numbered(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text("1\nx\n")
    with pytest.raises(QuorumError, match="line 2: malformed JSON"):
        read_jsonl(tmp_path / "f.jsonl")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"λ": 0.2})
    write_jsonl(tmp_path / "none.jsonl", [])
    assert read_jsonl(tmp_path / "none.jsonl") == []
    write_jsonl(tmp_path / "b.jsonl", [{"x": "a\u2028b"}, {"x": "c"}])
    assert read_json(tmp_path / "a.json") == {"λ": 0.2}
    assert read_jsonl(tmp_path / "b.jsonl") == [{"x": "a\u2028b"}, {"x": "c"}]
