"""A client's own meetings: a folder in any format, split into train, val and test unless it has these subfolders.

They are written in QMSum's schema, one JSON file a meeting.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.corpora.example import SPLITS
from pipeline.corpora.hash_order import tenths
from pipeline.corpora.organisation import meetings_of, to_json
from pipeline.corpora.transcripts import READERS
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def split_folder(folder: Path, into: Path, *, roles: bool = False) -> None:
    """Write a client's meetings to `into/{train,val,test}`.

    Args:
        roles: whether speakers' names are replaced. Names that may be left are printed.

    Raises:
        QuorumError: the folder is missing or has fewer than three meetings, or a file cannot be read.
    """
    if not folder.is_dir():
        raise QuorumError(f"params.yaml: own: folder {folder} does not exist; create it, or remove the client")
    if given := [split for split in SPLITS if (folder / split).is_dir()]:
        found = [(split, path, meeting) for split in given for path, meeting in meetings_of(folder / split).items()]
    else:
        meetings = meetings_of(folder)
        if len(meetings) < 3:
            kinds = ", ".join(f"*{ending}" for ending in READERS)
            raise QuorumError(f"{folder}: holds {len(meetings)} meetings ({kinds}); a client needs at least three")
        splits = tenths([path.name for path in meetings])
        found = [(splits[path.name], path, meeting) for path, meeting in meetings.items()]
    for split, path, meeting in found:
        if roles:
            from pipeline.corpora.roles import with_roles  # seconds, which others save

            meeting, missed = with_roles(meeting)
            if missed:
                say(f"{path}: may still be names: {', '.join(missed)}")
        write_json(into / split / f"{path.stem}.json", to_json(meeting))
