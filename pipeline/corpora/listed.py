"""Corpora whose files are published one by one, each with a checksum."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from pipeline.corpora.download import download
from pipeline.errors import QuorumError
from pipeline.workspace.files import replacing, sha256_file
from pipeline.workspace.layout import CHECKSUMS
from pipeline.workspace.progress import progress


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

        Raises:
            QuorumError: upstream is out of reach, or a file is missing, truncated or altered.
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
                if (found := sha256_file(origin)) != digest:
                    raise QuorumError(
                        f"{origin}: checksum {found[:12]}… instead of {digest[:12]}… (truncated or altered); restore "
                        f"the file as published at commit {self.commit}"
                    )
                with replacing(into / path.removeprefix(self.strip)) as temporary:
                    shutil.copyfile(origin, temporary)
                advance(1)
