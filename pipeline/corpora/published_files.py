"""Files as published: one by one, each with a checksum, or in archives; from a mirror or from their pinned commits.

An archive is a mirror's `.tar.xz`, or the tarballs of pinned commits. Two archives of the same files differ in their
bytes, so the files are checked: one hash of their paths and hashes.
"""

import http.client
import lzma
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace.files import replacing, sha256_file, sha256_json, write_bytes
from pipeline.workspace.layout import CHECKSUMS
from pipeline.workspace.progress import progress, say

DOWNLOAD_SECONDS, PROBE_SECONDS = 60, 20


@contextmanager
def _removing(downloaded: Sequence[Path]) -> Iterator[None]:
    """Remove downloads if the block finds one damaged or altered, so that the next call fetches them again."""
    try:
        yield
    except QuorumError as error:
        if not downloaded:
            raise
        for path in downloaded:
            path.unlink(missing_ok=True)
        raise QuorumError(f"{str(error).rpartition('; ')[0]}; the download was removed, so run again") from None


def answers(address: str) -> bool:
    """Whether an address serves anything."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=PROBE_SECONDS):
            return True
    except (OSError, ValueError, http.client.HTTPException):
        return False


def download(address: str, path: Path) -> None:
    """Write what an address serves to a file. Raises QuorumError if it serves nothing."""
    try:
        with urllib.request.urlopen(address, timeout=DOWNLOAD_SECONDS) as answer:
            write_bytes(path, answer.read())
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason, remedy = getattr(error, "reason", error), "check the network, or set data_source: mirror or sample"
        raise QuorumError(f"{address}: could not be fetched ({reason}); {remedy}") from None


def _check(path: Path, found: str, published: str, commit: str) -> None:
    if found != published:
        wrong = f"checksum {found[:12]}… instead of {published[:12]}… (truncated or altered)"
        raise QuorumError(f"{path}: {wrong}; restore it as published at commit {commit}")


@dataclass(frozen=True)
class Listed:
    """A corpus of which `data/checksums/<name>.sha256` lists every file of the pinned commit.

    `mirrored` is its folder in the mirror. `upstream` begins a file's address, and its path in the list ends it.
    `strip` is the beginning of the paths that is removed in data/raw.
    """

    name: str
    mirrored: str
    commit: str
    upstream: str
    strip: str = ""
    how_to_get = "set QUORUM_MIRROR, or check the network"

    @property
    def address(self) -> str:
        return self.upstream + next(iter(self.checksums()))

    def checksums(self) -> dict[str, str]:
        """Relative path (`data/Academic/train/X.json`) -> sha256."""
        lines = (CHECKSUMS / f"{self.name}.sha256").read_text(encoding="utf-8").splitlines()
        return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}

    def fetch(self, mirror: Path | None, downloads: Path, into: Path) -> None:
        """Copy the files from the mirror, or else from upstream; a file that is downloaded already is used again.

        Raises QuorumError if upstream is out of reach, or a file is missing, truncated or altered.
        """
        source, folder = ("upstream", downloads) if mirror is None else ("mirror", mirror / self.mirrored)
        listed = self.checksums()
        with progress(f"ingest {self.name} from {source}", len(listed)) as advance:
            for path, digest in listed.items():
                origin = folder / path
                if mirror is None and not (origin.is_file() and sha256_file(origin) == digest):
                    download(self.upstream + path, origin)
                if not origin.is_file():
                    raise QuorumError(f"{origin}: is missing from the mirror; restore it, or set data_source: upstream")
                with _removing([origin] if mirror is None else []):
                    _check(origin, sha256_file(origin), digest, self.commit)
                with replacing(into / path.removeprefix(self.strip)) as temporary:
                    shutil.copyfile(origin, temporary)
                advance(1)


@dataclass(frozen=True)
class Tarball:
    """A repository at a commit, and what of its folder `theirs` is unpacked to `ours`; a name may be a folder's.

    Names of folders, and the two folders, end with a slash.
    """

    repository: str
    commit: str
    names: tuple[str, ...]
    theirs: str = ""
    ours: str = ""

    @property
    def paths(self) -> dict[str, str]:
        """Their path -> our path."""
        return {self.theirs + name: self.ours + name for name in self.names}

    @property
    def address(self) -> str:
        return f"https://codeload.github.com/{self.repository}/tar.gz/{self.commit}"

    def fetched(self, folder: Path) -> Path:
        """The tarball's file in a folder, downloaded unless it is there."""
        path = folder / f"{self.repository.replace('/', '+')}-{self.commit[:12]}.tar.gz"
        if not path.is_file():
            say(f"ingest: fetching {self.address}")
            download(self.address, path)
        return path


@dataclass(frozen=True)
class Archived:
    """Archives of a data set: `mirrored` is a path below the mirror, `content` a hash of all files."""

    mirrored: str
    content: str
    tarballs: tuple[Tarball, ...]
    how_to_get = "lay its archive into the mirror"

    @property
    def commit(self) -> str:
        return "+".join(ball.commit[:8] for ball in self.tarballs)

    @property
    def address(self) -> str:
        return self.tarballs[0].address

    def fetch(self, mirror: Path | None, downloads: Path, into: Path) -> None:
        """Unpack the mirror's archive, which has our paths, or else the tarballs of the pinned commits.

        Raises QuorumError if an archive is out of reach, damaged or altered; then its download is removed. Nothing is
        written if a member is absolute, or if it or a link leads out of its archive.
        """
        if mirror is None:
            archives = [(ball.fetched(downloads), ball.paths) for ball in self.tarballs]
        else:
            ours = {path: path for ball in self.tarballs for path in ball.paths.values()}
            archives = [(mirror / self.mirrored, ours)]
        with _removing([archive for archive, _ in archives] if mirror is None else []):
            for archive, _ in archives:
                with _opened(archive) as tar:
                    for member in tar:
                        if member.name.startswith("/"):  # the filter would make it relative
                            raise tarfile.AbsolutePathError(member)
                        tarfile.data_filter(member, str(into))
            for archive, paths in archives:
                with _opened(archive) as tar:
                    tar.extractall(into, filter=partial(_renamed, paths))
            _check(archives[-1][0], content_of(into), self.content, self.commit)


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive) as tar:
            yield tar
    except FileNotFoundError:
        raise QuorumError(f"{archive}: is missing from the mirror; restore it, or set data_source: upstream") from None
    except tarfile.FilterError as error:
        remedy = "nothing was unpacked; remove the file, and get it from its publisher"
        raise QuorumError(f"{archive}: {error}; {remedy}") from None
    except (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if getattr(error, "errno", None):
            raise  # of the disk, and the archive may be intact
        raise QuorumError(f"{archive}: damaged ({error}); restore it") from None


def _renamed(paths: Mapping[str, str], member: tarfile.TarInfo, into: str) -> tarfile.TarInfo | None:
    """A file at our path, which begins below the one folder at the archive's top; None if no path names it."""
    path = member.name.partition("/")[2]
    if member.isfile() and not path.endswith("/.DS_Store"):
        for theirs, ours in paths.items():
            if path == theirs or (theirs.endswith("/") and path.startswith(theirs)):
                return tarfile.data_filter(member.replace(name=ours + path.removeprefix(theirs)), into)
    return None


def files_of(folder: Path) -> dict[str, str]:
    """Relative path -> sha256, of every file below a folder."""
    return {str(path.relative_to(folder)): sha256_file(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def content_of(folder: Path) -> str:
    """One hash of all files below a folder."""
    return sha256_json(list(files_of(folder).items()))
