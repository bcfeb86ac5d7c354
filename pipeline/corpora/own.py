"""One's own meetings: a folder of JSON files in QMSum's schema, split into train, val and test where it is not yet."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipeline.corpora.example import SPLITS, Split
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.qmsum import parse_meeting
from pipeline.errors import QuorumError
from pipeline.workspace.files import replacing

TENTH = 10


def split_folder(folder: Path, into: Path) -> None:
    """Copy a client's meetings to `into/{train,val,test}`.

    Raises:
        QuorumError: the folder is missing or holds fewer than three meetings, or a file is none.
    """
    if not folder.is_dir():
        raise QuorumError(f"params.yaml: own: folder {folder} does not exist; create it, or remove the client")
    if any((folder / split).is_dir() for split in SPLITS):
        chosen = {split: sorted((folder / split).glob("*.json")) for split in SPLITS}
    else:
        chosen = _split(folder)
    for split, paths in chosen.items():
        for path in paths:
            parse_meeting(path)  # here, since a later stage knows only the copy's path
            with replacing(into / split / path.name) as temporary:
                shutil.copyfile(path, temporary)


def _split(folder: Path) -> dict[Split, list[Path]]:
    """A tenth of the meetings, at least one, for each of val and test; the same ones every time."""
    names = hash_order([path.name for path in folder.glob("*.json")])
    if len(names) < 3:
        raise QuorumError(f"{folder}: holds {len(names)} meetings (*.json); a client needs at least three")
    held_out = max(1, len(names) // TENTH)
    parts: dict[Split, list[str]] = {
        "test": names[:held_out],
        "val": names[held_out : 2 * held_out],
        "train": names[2 * held_out :],
    }
    return {split: [folder / name for name in sorted(part)] for split, part in parts.items()}
