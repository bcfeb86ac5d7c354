"""Sources of a corpus: a mirror folder, its pinned upstream, or the sample in this repository.

Mirror and upstream give the same bytes, or an error. Two corpora may not be passed on: they come from the mirror, and
are not checked.
"""

from pathlib import Path
from typing import Literal

from pipeline.corpora.catalog import SOURCES, ByHand
from pipeline.corpora.published_files import answers, files_of
from pipeline.errors import QuorumError
from pipeline.workspace.files import copy_tree, read_json, sha256_file
from pipeline.workspace.layout import SAMPLE, downloads, mirror, source_record
from pipeline.workspace.progress import say

SourceName = Literal["mirror", "upstream", "sample"]
BEST_FIRST: tuple[SourceName, ...] = ("mirror", "upstream", "sample")


def reachable(corpus: str, source: SourceName) -> bool:
    """Whether a source is available: its folder exists, or upstream serves its first file."""
    if source == "sample":
        return (SAMPLE / corpus).is_dir()
    if source == "mirror":
        return mirror() is not None and (_mirror() / SOURCES[corpus].mirrored).exists()
    address = SOURCES[corpus].address
    return address is not None and answers(address)


def choose(corpus: str, wanted: str) -> SourceName:
    """The first of mirror, upstream and sample that is available if `wanted` is `auto`, else `wanted`.

    Raises QuorumError if none is available; the message says how to get the corpus.
    """
    if wanted != "auto":
        return wanted  # type: ignore[return-value]  # checked with params.yaml
    chosen = next((source for source in BEST_FIRST if reachable(corpus, source)), None)
    if chosen is None:
        raise QuorumError(f"corpora: {corpus}: cannot be fetched by itself; {SOURCES[corpus].how_to_get}")
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
    if used == "mirror" and isinstance(SOURCES[corpus], ByHand) and reachable(corpus, "mirror"):
        now = files_of(_mirror() / SOURCES[corpus].mirrored)
        return now | {record.name: sha256_file(record)} != files_of(record.parent)
    return wanted == "auto" and any(reachable(corpus, source) for source in BEST_FIRST[: BEST_FIRST.index(used)])


def fetch(corpus: str, source: SourceName, into: Path) -> None:
    """Copy a corpus's files to a folder, by their published paths.

    Raises QuorumError if the source is out of reach, or a file is missing, truncated or altered.
    """
    published = SOURCES[corpus]
    if source == "sample" or isinstance(published, ByHand):
        folder = SAMPLE / corpus if source == "sample" else _mirror() / published.mirrored
        if not folder.is_dir():
            raise QuorumError(f"corpora: {corpus}: {folder} does not exist; {published.how_to_get}")
        copy_tree(folder, into)
    else:
        published.fetch(_mirror() if source == "mirror" else None, downloads() / corpus, into)


def _mirror() -> Path:
    folder = mirror()
    if folder is None:
        raise QuorumError("data_source: mirror: no folder found; set QUORUM_MIRROR, or set data_source: auto")
    if not folder.is_dir():
        raise QuorumError(f"QUORUM_MIRROR: {folder}: is not a folder; correct it, or unset it")
    return folder
