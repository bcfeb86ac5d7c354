"""Sources of a corpus: a mirror folder, its pinned upstream, or the sample in this repository.

Files of the mirror and of upstream are checked against `data/checksums/<corpus>.sha256`, the hashes of the pinned commit's files. So
both give the same bytes or an error. Two corpora may not be passed on: they come from the mirror, and are not checked.
"""

from __future__ import annotations

import http.client
import shutil
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.corpora import elitr, meetingbank
from pipeline.corpora.archives import ARCHIVES, download, unpack_mirror, unpack_upstream
from pipeline.errors import QuorumError
from pipeline.workspace.files import copy_tree, read_json, replacing, sha256_file
from pipeline.workspace.layout import CHECKSUMS, SAMPLE, downloads, mirror, source_record
from pipeline.workspace.progress import progress, say

SourceName = Literal["mirror", "upstream", "sample"]
BEST_FIRST: tuple[SourceName, ...] = ("mirror", "upstream", "sample")
TIMEOUT_SECONDS = 20


@dataclass(frozen=True)
class Published:
    """How a corpus is published.

    `mirrored` is its folder in the mirror. `upstream` and `below` begin a file's address, and its path in the checksums
    ends it; upstream is None if a person must download the corpus, as `how_to_get` says. `strip` is the beginning of
    the paths that is removed in data/raw.
    """

    mirrored: str
    commit: str | None = None
    upstream: str | None = None
    below: str = ""
    how_to_get: str = ""
    strip: str = ""


_RAW = "https://raw.githubusercontent.com"
_HMNET = Published("hmnet", "416966c", f"{_RAW}/microsoft/HMNet/416966c/")
CORPORA: dict[str, Published] = {
    "qmsum": Published("qmsum", "83d7768", f"{_RAW}/Yale-LILY/QMSum/83d7768/", strip="data/"),
    "samsum": Published("samsum", "2f0667ae", f"{_RAW}/dfangkai/transformer/2f0667ae/", below="data/"),
    "ami": _HMNET,
    "icsi": _HMNET,
    "elitr": Published("elitr", how_to_get=elitr.HOW_TO_GET),
    "meetingbank": Published("meetingbank", how_to_get=meetingbank.HOW_TO_GET),
}


def checksum_file(corpus: str) -> Path:
    return CHECKSUMS / f"{corpus}.sha256"


def checksums(corpus: str) -> dict[str, str]:
    """Relative path (`data/Academic/train/X.json`) -> sha256, of every file of the pinned commit."""
    lines = checksum_file(corpus).read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def reachable(corpus: str, source: SourceName) -> bool:
    """Whether a source is available: its folder exists, or upstream serves its first file."""
    if source == "sample":
        return (SAMPLE / corpus).is_dir()
    if source == "mirror":
        folder = mirror()
        return folder is not None and (folder / _mirrored_as(corpus)).exists()
    address = _first_address(corpus)
    if address is None:
        return False
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            return True
    except (OSError, ValueError, http.client.HTTPException):
        return False


def _mirrored_as(corpus: str) -> str:
    """The path of a corpus below the mirror: a folder or an archive."""
    return ARCHIVES[corpus].mirrored if corpus in ARCHIVES else CORPORA[corpus].mirrored


def _first_address(corpus: str) -> str | None:
    """The address of upstream's first file; None of a corpus without upstream."""
    if corpus in ARCHIVES:
        return ARCHIVES[corpus].upstream[0].address
    published = CORPORA[corpus]
    return None if published.upstream is None else _address(published, next(iter(checksums(corpus))))


def commit_of(corpus: str) -> str | None:
    """The pinned commit of a corpus; None if it has none."""
    return ARCHIVES[corpus].commit if corpus in ARCHIVES else CORPORA[corpus].commit


def choose(corpus: str, wanted: str) -> SourceName:
    """The first of mirror, upstream and sample that is available if `wanted` is `auto`, else `wanted`.

    Raises:
        QuorumError: none is available; the message says how to get the corpus.
    """
    if wanted != "auto":
        return wanted  # type: ignore[return-value]  # checked with params.yaml
    chosen = next((source for source in BEST_FIRST if reachable(corpus, source)), None)
    if chosen is None:
        how = "lay its archive into the mirror" if corpus in ARCHIVES else CORPORA[corpus].how_to_get
        raise QuorumError(f"corpora: {corpus}: cannot be fetched by itself; {how}")
    if chosen == "sample":
        say("!" * 100)
        looked = f"a mirror ({mirror()})" if mirror() else "a mirror folder (QUORUM_MIRROR)"
        say(f"NO REAL {corpus.upper()} WITHIN REACH: neither {looked} nor upstream answered.")
        say("Using the SAMPLE instead, which is short and invented. Its numbers mean nothing.")
        say("!" * 100)
    return chosen


def is_outdated(corpus: str, wanted: str) -> bool:
    """Whether `auto` would now choose a better source than that of data/raw, or the mirror's files have changed.

    Files of a pinned commit do not change.
    """
    record = source_record(corpus)
    if wanted not in ("auto", "mirror") or not record.is_file():
        return False
    used = read_json(record)["source"]
    if used == "mirror" and CORPORA[corpus].upstream is None and reachable(corpus, "mirror"):
        now, then = _files(_mirror() / CORPORA[corpus].mirrored), _files(record.parent)
        then.pop(record.name)
        return now != then
    return wanted == "auto" and any(reachable(corpus, source) for source in BEST_FIRST[: BEST_FIRST.index(used)])


def fetch(corpus: str, source: SourceName, into: Path) -> None:
    """Copy a corpus's files to a folder, by their published paths.

    Raises:
        QuorumError: the source is out of reach, or a file is missing, truncated or altered.
    """
    if corpus in ARCHIVES:
        _fetch_archived(corpus, source, into)
        return
    published = CORPORA[corpus]
    if source == "sample" or published.upstream is None:
        folder = SAMPLE / corpus if source == "sample" else _mirror() / published.mirrored
        if not folder.is_dir():
            raise QuorumError(f"corpora: {corpus}: {folder} does not exist; {published.how_to_get}")
        copy_tree(folder, into)
        return
    listed = checksums(corpus)
    with progress(f"ingest {corpus} from {source}", len(listed)) as advance:
        for path, digest in listed.items():
            origin = _mirrored(published, path) if source == "mirror" else _downloaded(corpus, path, digest)
            _check(origin, digest, published)
            with replacing(into / path.removeprefix(published.strip)) as temporary:
                shutil.copyfile(origin, temporary)
            advance(1)


def _fetch_archived(corpus: str, source: SourceName, into: Path) -> None:
    archived = ARCHIVES[corpus]
    if source == "sample":
        copy_tree(SAMPLE / corpus, into)
    elif source == "mirror":
        say(f"ingest {corpus} from mirror")
        unpack_mirror(archived, _mirror() / archived.mirrored, into)
    else:
        unpack_upstream(archived, downloads() / corpus, into)


def _files(folder: Path) -> dict[str, str]:
    """Relative path -> sha256, of every file."""
    return {str(path.relative_to(folder)): sha256_file(path) for path in folder.rglob("*") if path.is_file()}


def _address(published: Published, path: str) -> str:
    return f"{published.upstream}{published.below}{path}"


def _mirror() -> Path:
    folder = mirror()
    if folder is None:
        raise QuorumError("data_source: mirror: no folder found; set QUORUM_MIRROR, or set data_source: auto")
    if not folder.is_dir():
        raise QuorumError(f"QUORUM_MIRROR: {folder}: is not a folder; correct it, or set data_source: auto")
    return folder


def _mirrored(published: Published, path: str) -> Path:
    origin = _mirror() / published.mirrored / path
    if not origin.is_file():
        raise QuorumError(f"{origin}: is missing from the mirror; restore it, or set data_source: upstream")
    return origin


def _downloaded(corpus: str, path: str, digest: str) -> Path:
    """A file from upstream; one that an interrupted run has downloaded is used again."""
    saved = downloads() / corpus / path
    if saved.is_file() and sha256_file(saved) == digest:
        return saved
    download(_address(CORPORA[corpus], path), saved)
    return saved


def _check(path: Path, digest: str, published: Published) -> None:
    found = sha256_file(path)
    if found != digest:
        raise QuorumError(
            f"{path}: checksum {found[:12]}… instead of {digest[:12]}… (truncated or altered); restore the file "
            f"as published at commit {published.commit}"
        )
