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
from pipeline.corpora.example import FOLDERS
from pipeline.corpora.text import clean, turns_of

_UTTERANCE = re.compile(r"\(([^)]+)\)\s*+(.*)")
_TAG = re.compile(r"<[^<>]*>")
_BULLET = re.compile(r"^[\s*•–-]+")


def read(folder: Path) -> Iterator[Dialogue]:
    """The meetings in `train`, `dev` and `test` somewhere below a folder; some have no minutes."""
    for split, name in FOLDERS.items():
        transcripts = {path.parent: path for path in sorted(folder.rglob(f"{name}/*/transcript*.txt"), reverse=True)}
        for meeting, transcript in sorted(transcripts.items()):
            minutes = sorted(meeting.glob("minutes_GENER*.txt"))[:1]
            turns = turns_of(lines_of(transcript.read_text(encoding="utf-8-sig")), first="SPEAKER")
            summary = summary_of("".join(path.read_text(encoding="utf-8-sig") for path in minutes))
            yield Dialogue(meeting.name, split, meeting.name, turns, summary)


def lines_of(transcript: str) -> Iterator[tuple[str | None, str]]:
    """Lines of a transcript as (speaker, words); the speaker is None where a line names none."""
    for line in transcript.splitlines():
        match = _UTTERANCE.match(line.strip())
        yield (match.group(1), clean(_TAG.sub(" ", match.group(2)))) if match else (None, clean(_TAG.sub(" ", line)))


def summary_of(minutes: str) -> str:
    """Minutes are bullet points: their text, a sentence a point."""
    points = [_BULLET.sub("", line).strip() for line in minutes.splitlines()]
    return clean(" ".join(point if point[-1] in ".?!:" else f"{point}." for point in points if point))
