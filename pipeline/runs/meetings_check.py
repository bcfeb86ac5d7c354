"""`python -m pipeline meetings check FOLDER`: which meetings can be read, and what is wrong with the others."""

from pathlib import Path

from pipeline.corpora.example import SPLITS
from pipeline.corpora.organisation import check, equal
from pipeline.corpora.transcripts import READERS
from pipeline.errors import QuorumError
from pipeline.workspace.words import printable


def check_folder(folder: str) -> None:
    """Print one line for each file: as text, so that a narrow terminal wraps it and cuts nothing off.

    Raises QuorumError if a file cannot be used.
    """
    found, remedy = check(Path(folder)), f"export the meeting as {', '.join(READERS)}, out of any archive"
    for line in (*map(str, found), *(f"{one}: is not read; {remedy}" for one in _others(Path(folder))), *equal(found)):
        print(printable(line).replace("\n", "\\n"))
    read = [one.meeting for one in found if one.meeting is not None]
    print(f"{len(read)} meetings can be read; {sum(len(meeting.queries) for meeting in read)} summaries")
    if unread := list(dict.fromkeys(one.path.name for one in found if one.meeting is None)):
        raise QuorumError(f"{folder}: {len(unread)} files cannot be used: {', '.join(unread)}; the lines above say why")


def _others(folder: Path) -> list[str]:
    """The visible files of a folder, or of its folders of splits, that are no meeting, summary, table or note."""
    folders = [folder / split for split in SPLITS if (folder / split).is_dir()] or [folder]
    paths = [path for one in folders for path in sorted(one.iterdir()) if path.is_file()]
    used = (*READERS, ".csv", ".md")
    return [path.name for path in paths if path.suffix.lower() not in used and not path.name.startswith(".")]
