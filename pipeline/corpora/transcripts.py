"""Transcripts as meeting software exports them -> turns: `.vtt`, `.srt`, `.docx`, `.txt`, and QMSum's `.json`.

The speaker is in a voice tag (Teams), before a colon (Zoom, Meet), in a cue's identifier (Webex), or on a heading with
the time (Teams' documents, Zoom's text). A line without a speaker continues the turn before. Subtitles cut a turn into
cues, so a cue of the same speaker continues the turn, too.

Reading a line takes time that is linear in its length: no regular expression here can match one text in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from pipeline.corpora.conversation import Turn
from pipeline.corpora.people_files import text_of
from pipeline.corpora.qmsum import parse_meeting
from pipeline.corpora.text import clean, turns_of
from pipeline.errors import QuorumError

LONGEST_NAME = 60
_TIME = r"[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?[\])]?"
_BEGINS_WITH_TIME = re.compile(rf"{_TIME}\s++")
_TIMES = re.compile(rf"{_TIME}(?:\s*+(?:-->|-|–)\s*+{_TIME})?")
_ARROW = re.compile(r"\d++(?::\d++){1,2}(?:[,.]\d++)?\s*+-[ -]>\s*+\d")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?\s++([^<>]++)>(.*?)(?=</v>|<v[ .]|\Z)", re.DOTALL)
_TAG = re.compile(r"<[^<>]*+>")
_CUE_NAME = re.compile(rf'\s*+(?:\d++\s++)?"([^"]{{1,{LONGEST_NAME}}})"')
"""Webex: `12 "Ann Lee" (2048)`."""
PLACES = {".vtt": "cue", ".json": "turn"}
"""What a reader counts, where that is not lines."""
Line = tuple[str | None, str]
"""(speaker, words); the speaker is None where a line names none."""


def read_transcript(path: Path) -> list[Turn]:
    """The turns of a meeting.

    Raises QuorumError if the file is missing, of another format or damaged, names no speaker first, or holds no turn.
    """
    if not path.is_file():
        raise QuorumError(f"{path}: no such file; give a meeting as {', '.join(READERS)}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise QuorumError(
            f"{path}: {path.suffix} is no format that is read; export the meeting as {', '.join(READERS)}"
        )
    lines: list[Line] = []
    last: str | None = None
    for number, (speaker, words) in reader(path):
        text, name = clean(words), (speaker or "").strip()
        if not text:
            continue
        if not name and last is None:
            place = PLACES.get(path.suffix.lower(), "line")
            raise QuorumError(f"{path}: {place} {number}: no speaker; begin lines with `Speaker: `")
        continues = not name or (name == last and path.suffix.lower() in CUES)
        lines.append((None if continues else name, text))
        last = name or last
    if not lines:
        raise QuorumError(f"{path}: the transcript is empty; give at least one `Speaker: words` line")
    return list(turns_of(lines, first=""))


def _vtt(path: Path) -> Iterator[tuple[int, Line]]:
    import webvtt

    try:
        captions = webvtt.from_string(text_of(path))
    except webvtt.errors.MalformedFileError as error:
        raise QuorumError(f"{path}: is no WebVTT ({error}); export it again") from None
    for number, caption in enumerate(captions, 1):
        named = _CUE_NAME.match(caption.identifier or "")
        for speaker, words in voices(caption.raw_text):  # the library gives two voices of one cue to the first
            yield number, (speaker or (named and named.group(1)), words)


def voices(cue: str) -> list[Line]:
    """The voices of a cue, in their order.

    >>> voices("<v Ann>Hello.</v> <v Bob>Hi.</v>"), voices("Ann Lee: so be it"), voices("so be it")
    ([('Ann', 'Hello.'), ('Bob', 'Hi.')], [('Ann Lee', 'so be it')], [(None, 'so be it')])
    """
    tagged = [(match.group(1).strip(), _TAG.sub("", match.group(2)).strip()) for match in _VOICE.finditer(cue)]
    return tagged or [_before_colon(line.strip()) for line in _TAG.sub("", cue).splitlines()]


def _srt(path: Path) -> Iterator[tuple[int, Line]]:
    """A cue is a number, a line of two times, and lines of words."""
    lines = [line.strip() for line in text_of(path).splitlines()]
    begins = [number for number, line in enumerate(lines) if _ARROW.match(line)]
    if not begins or any(line and not line.isdecimal() for line in lines[: begins[0]]):
        raise QuorumError(f"{path}: is no SubRip (it must begin with a cue's number and times); export it again")
    for begin, end in pairwise([*begins, len(lines) + 1]):
        number_above = end - 1 if lines[end - 1 : end] and lines[end - 1].isdecimal() else end
        for line in voices("\n".join(lines[begin + 1 : number_above])):
            yield begin + 1, line


def _docx(path: Path) -> Iterator[tuple[int, Line]]:
    from docx import Document

    try:
        text = "\n".join(paragraph.text for paragraph in Document(str(path)).paragraphs)
    except Exception as error:  # of zipfile, zlib, lxml or docx: a damaged document can raise any
        reason = " ".join(str(error).split())[:80]
        raise QuorumError(f"{path}: is no Word document ({reason}); export it again") from None
    return _lines(text)


def _lines(text: str) -> Iterator[tuple[int, Line]]:
    """(Line number, line): the speaker is before a colon, or on a heading above the words.

    All words below a heading are its speaker's, up to the next heading: a colon there names no speaker.
    """
    heading: str | None = None
    headings = colons = False
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or _TIMES.fullmatch(line):
            continue
        if name := _heading(line, colons):
            heading, headings = name, True
            continue
        speaker, words = (heading, line) if headings else _before_colon(line)
        yield number, (speaker, words)
        heading, colons = None, colons or speaker is not None


def _heading(line: str, colons: bool) -> str | None:
    """The name in `Ann Lee   0:03` or `[Ann Lee] 10:15:02`, None of another line.

    `colons`: whether speakers are before colons so far: then `we can meet at 10:30` is words, by its small letter.
    """
    before, *time = line.rsplit(None, 1)
    name = before.removeprefix("[").removesuffix("]").strip()
    if not time or not _TIMES.fullmatch(time[0]) or not _is_name(name) or ":" in name:
        return None
    return None if colons and name.split()[-1][0].islower() else name


def _before_colon(line: str) -> Line:
    """`Ann Lee: words` or `[00:01:02] Ann Lee: words`, as (speaker, words); a line without a name as (None, line)."""
    time = _BEGINS_WITH_TIME.match(line)
    before, _, words = line[time.end() if time else 0 :].partition(":")
    name = before.strip()
    return (name, words.strip()) if words[:1].isspace() and _is_name(name) else (None, line)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and not set("[]") & set(text)


def _json(path: Path) -> Iterator[tuple[int, Line]]:
    for number, turn in enumerate(parse_meeting(path).turns, 1):
        yield number, (turn.speaker, turn.text)


READERS: dict[str, Callable[[Path], Iterator[tuple[int, Line]]]] = {
    ".vtt": _vtt,
    ".srt": _srt,
    ".docx": _docx,
    ".txt": lambda path: _lines(text_of(path)),
    ".json": _json,
}
"""How a file is read, by its ending: its lines, each with its number."""
CUES = (".vtt", ".srt")
"""Endings of subtitles."""
