"""ELITR meetings.

Nedoluzhko et al., "ELITR Minuting Corpus: A Novel Dataset for Automatic Minuting from Multi-Party Meetings in English
and Czech", LREC 2022. A folder a meeting below `train`, `dev` and `test` (`test2` is left out), in it one
`transcript_MAN*.txt` with a line an utterance, `(SPEAKER) words` or just words of the speaker before, and
`minutes_GENER_annot*.txt`, of which the first by name is the reference. Markers such as `<laugh>` go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.conversation import Dialogue
from pipeline.corpora.example import Split
from pipeline.corpora.text import clean, turns_of
from pipeline.errors import QuorumError

FOLDERS: dict[Split, str] = {"train": "train", "val": "dev", "test": "test"}
HOW_TO_GET = (
    "download the English part of the ELITR Minuting Corpus (http://hdl.handle.net/11234/1-4692) and lay its folders "
    "train, dev and test into elitr/ of the mirror (QUORUM_MIRROR)"
)

_UTTERANCE = re.compile(r"\(([^)]+)\)\s*+(.*)")
_TAG = re.compile(r"<[^<>]*>")
_BULLET = re.compile(r"^[\s*•–-]+")


def read(folder: Path) -> Iterator[Dialogue]:
    """The meetings in `train`, `dev` and `test` somewhere below a folder; some have no minutes."""
    for split, name in FOLDERS.items():
        transcripts = {path.parent: path for path in sorted(folder.rglob(f"{name}/*/transcript*.txt"), reverse=True)}
        if not transcripts:
            raise QuorumError(f"{folder}: has no {name}/<meeting>/transcript*.txt; {HOW_TO_GET}")
        for meeting, transcript in sorted(transcripts.items()):
            minutes = sorted(meeting.glob("minutes_GENER*.txt"))[:1]
            turns = turns_of(lines_of(_text(transcript)), first="SPEAKER")
            yield Dialogue(meeting.name, split, meeting.name, turns, summary_of("".join(map(_text, minutes))))


def lines_of(transcript: str) -> Iterator[tuple[str | None, str]]:
    """Lines of a transcript as (speaker, words); the speaker is None where a line names none."""
    for line in transcript.splitlines():
        match = _UTTERANCE.match(line.strip())
        yield (match.group(1), clean(_TAG.sub(" ", match.group(2)))) if match else (None, clean(_TAG.sub(" ", line)))


def summary_of(minutes: str) -> str:
    """Minutes are bullet points: their text, a sentence a point."""
    points = [_BULLET.sub("", line).strip() for line in minutes.splitlines()]
    return clean(" ".join(point if point[-1] in ".?!:" else f"{point}." for point in points if point))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise QuorumError(f"{path}: is not UTF-8 (byte {error.start}); restore the file as published") from None
