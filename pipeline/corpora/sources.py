"""Where a corpus comes from: a mirror folder, its pinned upstream, or the sample in this repository.

Every file of the mirror and of upstream is checked against `qmsum.sha256`, which lists the 232 meetings of the
pinned commit, so both give the same bytes or an error.
"""

from __future__ import annotations

import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Literal

from pipeline.errors import QuorumError
from pipeline.files import read_json, replacing, sha256_file, write_bytes
from pipeline.layout import RAW, SAMPLE, downloads, mirror
from pipeline.progress import progress, say

SourceName = Literal["mirror", "upstream", "sample"]
BEST_FIRST: tuple[SourceName, ...] = ("mirror", "upstream", "sample")

QMSUM_COMMIT = "83d7768"
QMSUM_UPSTREAM = f"https://raw.githubusercontent.com/Yale-LILY/QMSum/{QMSUM_COMMIT}/"
CHECKSUMS = Path(__file__).with_name("qmsum.sha256")
TIMEOUT_SECONDS = 20


def qmsum_checksums() -> dict[str, str]:
    """Relative path (`data/Academic/train/X.json`) -> sha256, of every meeting of the pinned commit."""
    lines = CHECKSUMS.read_text(encoding="utf-8").splitlines()
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def reachable(source: SourceName) -> bool:
    """Whether a source would answer now: the folder exists, or upstream serves one checked file."""
    if source == "sample":
        return True
    if source == "mirror":
        folder = mirror()
        return folder is not None and (folder / "qmsum").is_dir()
    first = next(iter(qmsum_checksums()))
    try:
        with urllib.request.urlopen(QMSUM_UPSTREAM + first, timeout=TIMEOUT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def resolve(wanted: str) -> SourceName:
    """`auto` -> the first of mirror, upstream and sample that answers; any other name stands as it is."""
    if wanted != "auto":
        return wanted  # type: ignore[return-value]  # params.yaml is typed; only source names get here
    chosen = next(source for source in BEST_FIRST if reachable(source))
    if chosen == "sample":
        say("!" * 100)
        say("NO REAL CORPUS WITHIN REACH: neither a mirror folder (QUORUM_MIRROR) nor upstream answered.")
        say("Going on with the SAMPLE: 36 short made-up meetings. Its numbers mean nothing.")
        say("!" * 100)
    return chosen


def better_than_recorded(wanted: str) -> bool:
    """Whether `auto` would now take a better source than data/raw was made from."""
    record = RAW / "source.json"
    if wanted != "auto" or not record.is_file():
        return False
    used = read_json(record)["qmsum"]
    return any(reachable(source) for source in BEST_FIRST[: BEST_FIRST.index(used)])


def fetch_qmsum(source: SourceName, into: Path) -> None:
    """Copy QMSum's meetings to `into/{domain}/{split}/*.json`.

    Raises:
        QuorumError: the source is out of reach, or a file is missing, truncated or altered.
    """
    if source == "sample":
        shutil.copytree(SAMPLE / "qmsum", into, dirs_exist_ok=True)
        return
    checksums = qmsum_checksums()
    with progress(f"ingest qmsum from {source}", len(checksums)) as advance:
        for path, digest in checksums.items():
            origin = _mirrored(path) if source == "mirror" else _downloaded(path, digest)
            _check(origin, digest)
            target = into / Path(path).relative_to("data")
            with replacing(target) as temporary:
                shutil.copyfile(origin, temporary)
            advance(1)


def _mirrored(path: str) -> Path:
    folder = mirror()
    if folder is None:
        raise QuorumError("data_source: mirror: no folder found; set QUORUM_MIRROR, or set data_source: auto")
    origin = folder / "qmsum" / path
    if not origin.is_file():
        raise QuorumError(f"{origin}: is missing from the mirror; restore it, or set data_source: upstream")
    return origin


def _downloaded(path: str, digest: str) -> Path:
    """The file from upstream; one that an interrupted run already brought is not fetched again."""
    kept = downloads() / "qmsum" / path
    if kept.is_file() and sha256_file(kept) == digest:
        return kept
    url = QMSUM_UPSTREAM + path
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            write_bytes(kept, answer.read())
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise QuorumError(
            f"{url}: could not be fetched ({reason}); check the network, or set data_source: mirror or sample"
        ) from None
    return kept


def _check(path: Path, digest: str) -> None:
    found = sha256_file(path)
    if found != digest:
        raise QuorumError(
            f"{path}: checksum {found[:12]}… instead of {digest[:12]}… (truncated or altered); restore the file "
            f"as published at commit {QMSUM_COMMIT}"
        )
