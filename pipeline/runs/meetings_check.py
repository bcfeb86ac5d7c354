"""`python -m pipeline meetings check FOLDER`: which meetings can be read, and what is wrong with the others."""

from __future__ import annotations

from pathlib import Path

from pipeline.corpora.example import SPLITS
from pipeline.corpora.organisation import check
from pipeline.corpora.transcripts import READERS
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json
from pipeline.workspace.words import printable


def check_folder(folder: str) -> None:
    """Print one line for each file: as text, so that a narrow terminal wraps it and cuts nothing off.

    Raises QuorumError if a file cannot be used.
    """
    rows = [one.to_row() for one in check(Path(folder))]
    lines = [_line(row) for row in rows]
    lines += [
        f"{name}: is not read; export the meeting as {', '.join(READERS)}, out of any archive"
        for name in _others(Path(folder))
    ]
    for line in lines:
        print(printable(line).replace("\n", "\\n"))
    unread = list(dict.fromkeys(str(row["file"]) for row in rows if "turns" not in row))
    read = [row for row in rows if "turns" in row]
    print(f"{len(read)} meetings can be read; {sum(int(row['queries']) for row in read)} summaries")
    if unread:
        raise QuorumError(f"{folder}: {len(unread)} files cannot be used: {', '.join(unread)}; the lines above say why")


def _line(row: Json) -> str:
    """What was read of a file, then what is wrong."""
    counts = ""
    if "turns" in row:
        counts = f"{row['turns']} turns, {row['words']} words, {row['queries']} summaries, speakers {row['speakers']}"
    return f"{row['file']}: " + "; ".join(filter(None, (counts, row["wrong"])))


def _others(folder: Path) -> list[str]:
    """The visible files of a folder, or of its folders of splits, that are no meeting, summary, table or note."""
    folders = [folder / split for split in SPLITS if (folder / split).is_dir()] or [folder]
    paths = [path for one in folders for path in sorted(one.iterdir()) if path.is_file()]
    used = (*READERS, ".csv", ".md")
    return [path.name for path in paths if path.suffix.lower() not in used and not path.name.startswith(".")]
