"""Transcripts as meeting software exports them -> turns: `.vtt`, `.srt`, `.docx`, `.txt`, and QMSum's `.json`.

Who speaks stands in many places: in a voice tag (Teams), before a colon (Zoom, Meet), in a cue's own name (Webex), or
on a line of its own with the time (Teams' documents, Zoom's text). A line without a speaker goes on with the turn
before. Subtitles cut a turn into cues, so that a cue of the same speaker goes on with it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pipeline.corpora.example import Turn
from pipeline.corpora.qmsum import parse_meeting
from pipeline.corpora.text import clean
from pipeline.errors import QuorumError

_TIME = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?"
_COLON = re.compile(rf"^\s*(?:[\[(]?{_TIME}[\])]?\s+)?([^:\n\[\]]{{1,60}}?)\s*:\s+(\S.*)$", re.DOTALL)
"""`Ann Lee: words`, `[00:01:02] Ann Lee: words`."""
_HEADING = re.compile(rf"^\s*\[?([^\]\[\n:]{{1,60}}?)\]?\s+[\[(]?{_TIME}[\])]?\s*$")
"""`Ann Lee   0:03`, `[Ann Lee] 10:15:02`: the words come on the lines behind it."""
_TIME_ALONE = re.compile(rf"^\s*[\[(]?{_TIME}(?:\s*(?:-->|-|–)\s*{_TIME})?[\])]?\s*$")
_VOICE = re.compile(r"<v(?:\.[^ >]*)?\s+([^>]+)>(.*?)(?=</v>|<v[ .]|\Z)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_CUE_NAME = re.compile(r'^\s*(?:\d+\s+)?"([^"]{1,60})"')
"""Webex: `12 "Ann Lee" (2048)`."""
Said = tuple[str | None, str]
"""A speaker, where one is named, and words."""


def read_transcript(path: Path) -> list[Turn]:
    """The turns of a meeting.

    Raises:
        QuorumError: the file is missing, of another format or damaged, names no speaker first, or holds no turn.
    """
    if not path.is_file():
        raise QuorumError(f"{path}: no such file; give a meeting as {', '.join(READERS)}")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise QuorumError(
            f"{path}: {path.suffix or 'a file without an ending'} is no format that is read; export the "
            f"meeting as {', '.join(READERS)}"
        )
    turns = _joined(reader(path), path)
    if not turns:
        raise QuorumError(f"{path}: the transcript is empty; give at least one `Speaker: words` line")
    return turns


def _joined(said: Iterable[tuple[int, Said]], path: Path) -> list[Turn]:
    """Turns of what was said."""
    cut = path.suffix.lower() in CUT
    turns: list[Turn] = []
    for number, (speaker, words) in said:
        text = clean(words)
        if not text:
            continue
        if speaker is None and not turns:
            raise QuorumError(f"{path}: line {number}: no speaker; begin lines with `Speaker: `")
        if speaker is None or (cut and turns and speaker.strip() == turns[-1].speaker):
            turns[-1] = Turn(turns[-1].speaker, f"{turns[-1].text} {text}")
        else:
            turns.append(Turn(speaker.strip(), text))
    return turns


def text_of(path: Path) -> str:
    """A text file in whatever encoding: UTF-8, else what it most likely is.

    Raises:
        QuorumError: it is no text.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(content).best()
        if best is None:
            raise QuorumError(f"{path}: is no text in any known encoding; save it as UTF-8") from None
        return str(best)


def _vtt(path: Path) -> Iterator[tuple[int, Said]]:
    import webvtt

    try:
        captions = webvtt.from_string(text_of(path))
    except webvtt.errors.MalformedFileError as error:
        raise QuorumError(f"{path}: is no WebVTT ({error}); export it again") from None
    for number, caption in enumerate(captions, 1):
        named = _CUE_NAME.match(caption.identifier or "")
        # The library hands two voices of one cue to the first.
        for said in voices(caption.raw_text):
            yield number, (said[0] or (named.group(1) if named else None), said[1])


def voices(cue: str) -> list[Said]:
    """The voices of a cue, in their order.

    >>> voices("<v Ann>Hello.</v> <v Bob>Hi.</v>"), voices("Ann Lee: so be it"), voices("so be it")
    ([('Ann', 'Hello.'), ('Bob', 'Hi.')], [('Ann Lee', 'so be it')], [(None, 'so be it')])
    """
    tagged = [(match.group(1).strip(), _TAG.sub("", match.group(2)).strip()) for match in _VOICE.finditer(cue)]
    if tagged:
        return tagged
    return [said for _, said in _lines(_TAG.sub("", cue))]


def _srt(path: Path) -> Iterator[tuple[int, Said]]:
    import srt

    try:
        cues = list(srt.parse(text_of(path)))
    except srt.SRTParseError as error:
        raise QuorumError(f"{path}: is no SubRip ({' '.join(str(error).split())[:80]}); export it again") from None
    for cue in cues:
        for said in voices(cue.content):
            yield cue.index, said


def _docx(path: Path) -> Iterator[tuple[int, Said]]:
    from zipfile import BadZipFile

    from docx import Document
    from docx.opc.exceptions import PackageNotFoundError

    try:
        document = Document(str(path))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise QuorumError(f"{path}: is no Word document ({error}); export it again") from None
    yield from _lines("\n".join(paragraph.text for paragraph in document.paragraphs))


def _txt(path: Path) -> Iterator[tuple[int, Said]]:
    yield from _lines(text_of(path))


def _lines(text: str) -> Iterator[tuple[int, Said]]:
    """Lines with a speaker before a colon, or on a line with the time above the words."""
    heading: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or _TIME_ALONE.match(line):
            continue
        if match := _HEADING.match(line):
            heading = match.group(1)
        elif match := _COLON.match(line):
            heading = None
            yield number, (match.group(1), match.group(2))
        else:
            yield number, (heading, line)
            heading = None


def _json(path: Path) -> Iterator[tuple[int, Said]]:
    for number, turn in enumerate(parse_meeting(path).turns, 1):
        yield number, (turn.speaker, turn.text)


READERS: dict[str, Callable[[Path], Iterator[tuple[int, Said]]]] = {
    ".vtt": _vtt,
    ".srt": _srt,
    ".docx": _docx,
    ".txt": _txt,
    ".json": _json,
}
"""How a file is read, by its ending."""
CUT = (".vtt", ".srt")
"""Those whose cues are no turns."""
