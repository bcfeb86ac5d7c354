"""Data sets that come as archives: what is taken of them, under which names, and that it is what was published."""

import io
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from pipeline.corpora.published_files import Archived, Tarball, content_of
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_bytes

FILES = {"data/one.txt": b"1", "data/deep/two.txt": b"2", "other/three.txt": b"3", "data/.DS_Store": b"x"}
BALLS = (Tarball("a/b", "1" * 40, ("data/",)), Tarball("a/b", "2" * 40, ("three.txt",), "other/", "first/"))
MIRRORED = {"data/one.txt": b"1", "data/deep/two.txt": b"2", "first/three.txt": b"3"}
"""A mirror's archive has the files at our paths."""
NO_USE = [
    (None, "is missing from the mirror"),
    (b"no archive", "damaged"),
    ({"data/one.txt": b"2"}, "checksum .*… instead"),
]
LEADING_OUT = [
    ("top/data/../../../../X.py", tarfile.REGTYPE, ""),
    ("/top/data/one.txt", tarfile.REGTYPE, ""),
    ("top/data/link", tarfile.SYMTYPE, "../../../etc/passwd"),
    ("top/data/link", tarfile.SYMTYPE, "/etc/passwd"),
    ("top/data/link", tarfile.LNKTYPE, "../X.py"),
]


def tar(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(f"top/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def add(path: Path, name: str, kind: bytes, target: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    with tarfile.open(path, "a") as archive:
        archive.addfile(member)


@pytest.fixture
def published(tmp_path: Path) -> Archived:
    for name, content in MIRRORED.items():
        write_bytes(tmp_path / "expected" / name, content)
    path = tar(tmp_path / "mirror" / "nlp" / "x.tar", MIRRORED | {"SOURCE.txt": b"s"}, "w")
    add(path, "top/data/deep/link", tarfile.SYMTYPE, "../one.txt")
    return Archived("nlp/x.tar", content_of(tmp_path / "expected"), BALLS)


def test_tarballs_give_what_a_mirror_does(published: Archived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is fetched once; other files, an editor's files and links, though no fault, are not unpacked."""
    ball, fetched = tar(tmp_path / "ball.tar.gz", FILES).read_bytes(), []

    def answer(address: str, **_: Any) -> io.BytesIO:
        fetched.append(address)
        return io.BytesIO(ball)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    published.fetch(tmp_path / "mirror", tmp_path / "downloads", tmp_path / "raw")
    for into in ("one", "two"):
        published.fetch(None, tmp_path / "downloads", tmp_path / into)
    assert {content_of(tmp_path / into) for into in ("raw", "one", "two")} == {published.content}
    assert fetched == [f"https://codeload.github.com/a/b/tar.gz/{number * 40}" for number in "12"]


@pytest.mark.parametrize(("content", "message"), NO_USE)
def test_an_archive_that_is_no_use_is_named(content: Any, message: str, published: Archived, tmp_path: Path) -> None:
    path = tmp_path / "mirror" / published.mirrored
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        tar(path, content)
    with pytest.raises(QuorumError, match=rf"x\.tar: {message}"):
        published.fetch(tmp_path / "mirror", tmp_path / "downloads", tmp_path / "raw")


@pytest.mark.parametrize(
    ("served", "message"), [(b"<html>log in", r"damaged \((?s:.*)\)"), (FILES | {"data/one.txt": b"2"}, "checksum .*")]
)
def test_a_bad_download_is_removed_and_fetched_again(
    served: Any, message: str, published: Archived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = tar(tmp_path / "good.tar.gz", FILES).read_bytes()
    bad = served if isinstance(served, bytes) else tar(tmp_path / "bad.tar.gz", served).read_bytes()
    answers = iter([bad, bad, good, good])
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO(next(answers)))
    with pytest.raises(QuorumError, match=rf"a\+b-\d+\.tar\.gz: {message}; the download was removed, so run again"):
        published.fetch(None, tmp_path / "downloads", tmp_path / "raw")
    assert list((tmp_path / "downloads").iterdir()) == []
    published.fetch(None, tmp_path / "downloads", tmp_path / "raw")
    assert content_of(tmp_path / "raw") == published.content


@pytest.mark.parametrize(("name", "kind", "target"), LEADING_OUT)
def test_a_member_that_leads_out_of_an_archive_is_refused_before_anything_is_written(
    name: str, kind: bytes, target: str, published: Archived, tmp_path: Path
) -> None:
    """It is the last member of the second archive."""
    for ball in BALLS:
        path = tar(tmp_path / "downloads" / f"a+b-{ball.commit[:12]}.tar.gz", FILES, "w")
    add(path, name, kind, target)
    before = {path for path in tmp_path.rglob("*") if path.suffix != ".gz"}
    with pytest.raises(QuorumError, match="nothing was unpacked; the download was removed"):
        published.fetch(None, tmp_path / "downloads", tmp_path / "raw")
    assert {*tmp_path.rglob("*")} == before
