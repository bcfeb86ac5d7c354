"""One's own meetings: a folder in whatever formats, split into train, val and test where it is not yet.

What later stages read is QMSum's schema, one JSON file a meeting.
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
        roles: whether speakers' names are replaced; what may still be one is told.

    Raises:
        QuorumError: the folder is missing or holds fewer than three meetings, or a file is none.
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
    """A tenth of the meetings, at least one, for each of val and test; the same ones every time."""
    files = {path.name: path for path in meeting_files(folder)}
    names = hash_order(list(files))
    if len(names) < 3:
        kinds = ", ".join(f"*{ending}" for ending in READERS)
        raise QuorumError(f"{folder}: holds {len(names)} meetings ({kinds}); a client needs at least three")
    held_out = max(1, len(names) // TENTH)
    parts: dict[Split, Sequence[str]] = {
        "test": names[:held_out],
        "val": names[held_out : 2 * held_out],
        "train": names[2 * held_out :],
    }
    return {split: [files[name] for name in sorted(part)] for split, part in parts.items()}
