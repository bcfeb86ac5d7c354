"""Transcripts as meeting software exports them -> turns: `.vtt`, `.srt`, `.sbv`, `.docx`, `.txt`, and QMSum's `.json`.

No line is lost in silence: `read` also returns what became of each. `docs/data.md` lists what is read of which tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.corpora.conversation import Turn
from pipeline.corpora.cues import read_cues
from pipeline.corpora.paragraphs import read_paragraphs
from pipeline.corpora.people_files import read_text
from pipeline.corpora.qmsum import Meeting, parse_meeting
from pipeline.corpora.said import Said, Transcript, transcript_of
from pipeline.corpora.speakers import TIMES, UNKNOWN
from pipeline.corpora.text import visible
from pipeline.errors import QuorumError
from pipeline.workspace.progress import say

_CUES = {".vtt": "WebVTT", ".srt": "SubRip", ".sbv": "subtitle file"}
_LEFT_OUT = {"pPr", "rPr", "del", "moveFrom", "Fallback"}
"""Parts of a Word document: formats, deleted and moved text, and copies for older programs."""
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def read_transcript(path: Path) -> list[Turn]:
    """The turns of a meeting; see `read`. If there are lines that cannot be read, this is printed."""
    found = read(path)
    if "unreadable" in found.kinds:
        say(f"{path}: {found}")
    return list(found.turns)


def read(path: Path) -> Transcript:
    """The turns of a meeting, and what became of each line.

    Raises QuorumError if the file is missing, of another format or damaged, or holds no turn.
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
    said = [Said(place, turn.speaker.strip() or UNKNOWN, turn.text, True) for place, turn in enumerate(meeting.turns)]
    return transcript_of(said, {}, [f"{turn.speaker}: {turn.text}" for turn in meeting.turns])


def _text(path: Path) -> Transcript:
    text, encoding = read_text(path)
    lines = visible(text).splitlines()
    found = read_cues(lines) if path.suffix.lower() in _CUES else read_paragraphs(lines)
    if found is None:
        form = _CUES[path.suffix.lower()]
        raise QuorumError(f"{path}: is no {form} (no line has a cue's times); export it again")
    return transcript_of(*found, lines, encoding)


def _docx(path: Path) -> Transcript:
    from docx import Document

    try:
        lines = visible(_words(Document(str(path)).element.body)).splitlines()
    except Exception as error:  # of zipfile, zlib, lxml or docx: a damaged document can raise any
        reason = " ".join(str(error).split())[:80]
        raise QuorumError(f"{path}: is no Word document ({reason}); export it again") from None
    return transcript_of(*read_paragraphs(lines), lines)


def _words(node: Any) -> str:
    """The text of a part of a Word document. Paragraphs are lines, also of text boxes; rows of tables: `Ann: words`."""
    name = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""  # a comment's tag is a function
    if name in _LEFT_OUT or name == "t":
        return node.text or "" if name == "t" else ""
    if name == "tr":
        cells = [cell for cell in (" ".join(_words(cell).split()) for cell in node) if cell]
        is_label = len(cells) > 1 and not re.fullmatch(TIMES, cells[-1])
        names = [cell for cell in cells[:-1] if not re.fullmatch(TIMES, cell)] if is_label else []
        return f"{' '.join(names)}: {cells[-1]}\n" if names else "   ".join(cells) + "\n"
    inner = _SIGNS.get(name, "") + "".join(map(_words, node))
    return f"\n{inner}\n" if name == "txbxContent" else f"{inner}\n" if name == "p" else inner


READERS: dict[str, Callable[[Path], Transcript]] = {
    ".vtt": _text,
    ".srt": _text,
    ".docx": _docx,
    ".txt": _text,
    ".json": lambda path: of_meeting(parse_meeting(path)),
    ".sbv": _text,
}
"""How a file is read, by its ending."""
