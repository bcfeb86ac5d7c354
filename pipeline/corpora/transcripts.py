"""Transcripts as meeting software exports them -> turns: `.vtt`, `.srt`, `.sbv`, `.docx`, `.txt`, and QMSum's `.json`.

No line is lost in silence: `read` also returns what became of each. `docs/data.md` lists what is read of which tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.corpora.conversation import Turn
from pipeline.corpora.cues import read_cues
from pipeline.corpora.encodings import UTF8
from pipeline.corpora.paragraphs import read_paragraphs
from pipeline.corpora.people_files import read_text
from pipeline.corpora.qmsum import Meeting, parse_meeting
from pipeline.corpora.said import Said, Transcript, transcript_of
from pipeline.corpora.speakers import UNKNOWN
from pipeline.corpora.text import visible
from pipeline.corpora.word import text_of_document
from pipeline.errors import QuorumError
from pipeline.workspace.progress import say

_FORMATS = {".vtt": "WebVTT", ".srt": "SubRip", ".sbv": "subtitle file of YouTube"}


def read_transcript(path: Path) -> list[Turn]:
    """The turns of a meeting; see `read`. What cannot be read of it is printed."""
    found = read(path)
    if "unreadable" in found.kinds:
        say(f"{path}: {found}")
    return list(found.turns)


def read(path: Path) -> Transcript:
    """The turns of a meeting, and what became of each line.

    Raises:
        QuorumError: the file is missing, of another format or damaged, or holds no turn.
    """
    if not path.is_file():
        raise QuorumError(f"{path}: no such file; give a meeting as {', '.join(READERS)}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise QuorumError(
            f"{path}: {path.suffix} is no format that is read; export the meeting as {', '.join(READERS)}"
        )
    found = reader(path)
    if not found.turns:
        raise QuorumError(f"{path}: the transcript is empty; give at least one `Speaker: words` line")
    return found


def of_meeting(meeting: Meeting) -> Transcript:
    """A meeting of QMSum's schema: each turn is a line."""
    said = [
        Said(place, turn.speaker.strip() or UNKNOWN, turn.text, new=True) for place, turn in enumerate(meeting.turns)
    ]
    return transcript_of(said, {}, [f"{turn.speaker}: {turn.text}" for turn in meeting.turns])


def _cues(path: Path) -> Transcript:
    text, encoding = read_text(path)
    lines = visible(text).splitlines()
    found = read_cues(lines)
    if found is None:
        form = _FORMATS[path.suffix.lower()]
        raise QuorumError(f"{path}: is no {form} (it has no line of times); export it again")
    return transcript_of(*found, lines, encoding)


def _txt(path: Path) -> Transcript:
    text, encoding = read_text(path)
    return _of_lines(visible(text).splitlines(), encoding)


def _docx(path: Path) -> Transcript:
    return _of_lines(visible(text_of_document(path)).splitlines(), UTF8)


def _of_lines(lines: Sequence[str], encoding: str) -> Transcript:
    return transcript_of(*read_paragraphs(lines), lines, encoding)


READERS: dict[str, Callable[[Path], Transcript]] = {
    ".vtt": _cues,
    ".srt": _cues,
    ".docx": _docx,
    ".txt": _txt,
    ".json": lambda path: of_meeting(parse_meeting(path)),
    ".sbv": _cues,
}
"""How a file is read, by its ending."""
