"""A client's own meetings: a folder in any format, split into train, val and test unless it has these subfolders.

They are written in QMSum's schema, one JSON file a meeting.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.corpora.example import SPLITS, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.organisation import meeting_files, read_meeting, to_json
from pipeline.corpora.transcripts import READERS
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say

TENTH = 10


def split_folder(folder: Path, into: Path, *, roles: bool = False) -> None:
    """Write a client's meetings to `into/{train,val,test}`.

    Args:
        roles: whether speakers' names are replaced. Names that may be left are printed.

    Raises:
        QuorumError: the folder is missing or has fewer than three meetings, or a file cannot be read.
    """
    if not folder.is_dir():
        raise QuorumError(f"params.yaml: own: folder {folder} does not exist; create it, or remove the client")
    if any((folder / split).is_dir() for split in SPLITS):
        chosen: dict[Split, Sequence[Path]] = {
            split: meeting_files(folder / split) if (folder / split).is_dir() else [] for split in SPLITS
        }
    else:
        chosen = _split(folder)
    for split, paths in chosen.items():
        for path in paths:
            meeting = read_meeting(path)
            if roles:
                from pipeline.corpora.roles import with_roles  # seconds, which others save

                meeting, missed = with_roles(meeting)
                if missed:
                    say(f"{path}: may still be names: {', '.join(missed)}")
            write_json(into / split / f"{path.stem}.json", to_json(meeting))


def _split(folder: Path) -> dict[Split, Sequence[Path]]:
    """Split -> files: a tenth of the meetings, at least one, for each of val and test, by a fixed shuffle."""
    files = {path.name: path for path in meeting_files(folder)}
    names = hash_order(list(files))
    if len(names) < 3:
        kinds = ", ".join(f"*{ending}" for ending in READERS)
        raise QuorumError(f"{folder}: holds {len(names)} meetings ({kinds}); a client needs at least three")
    count = max(1, len(names) // TENTH)
    parts: dict[Split, Sequence[str]] = {
        "test": names[:count],
        "val": names[count : 2 * count],
        "train": names[2 * count :],
    }
    return {split: [files[name] for name in sorted(part)] for split, part in parts.items()}
