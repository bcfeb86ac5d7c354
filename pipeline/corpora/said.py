"""What the lines of a transcript say, and what became of each line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from pipeline.corpora.conversation import Turn
from pipeline.corpora.encodings import UTF8
from pipeline.corpora.text import clean

Kind = Literal["used", "merged", "repeated", "layout", "header", "note", "unreadable"]
"""Of a line: it begins a turn; continues one; has only words of the cue before, which rolls on; is empty, a number,
times or a name above words; comes before the first words; is a remark of the tool; cannot be read."""


class Said(NamedTuple):
    """Words of one line. `place`: the line, from 0; `new`: whether they begin a turn also after the same speaker's."""

    place: int
    speaker: str
    words: str
    new: bool = False


@dataclass(frozen=True)
class Transcript:
    """The turns of a meeting, and its file: lines (or the turns of a JSON file), each with its kind; the encoding."""

    turns: tuple[Turn, ...]
    lines: Sequence[str]
    kinds: Sequence[Kind]
    encoding: str = UTF8

    def __str__(self) -> str:
        """How many lines are of each kind, and the first of them."""
        found = []
        for kind in (kind for kind in get_args(Kind) if kind in self.kinds):
            first = self.kinds.index(kind)
            text = " ".join(self.lines[first][:200].split()) or "empty"
            begin = text if len(text) <= 30 else f"{text[:29]}…"
            found.append(f"{self.kinds.count(kind)} {kind} (line {first + 1}: {begin})")
        encoding = "" if self.encoding == UTF8 else f", read as {self.encoding}"
        return f"{len(self.lines)} lines{encoding}: {', '.join(found)}"


def transcript_of(
    said: Iterable[Said], others: Mapping[int, Kind], lines: Sequence[str], encoding: str = UTF8
) -> Transcript:
    """Join words, in the order of the file, to turns. `others`: place -> kind of the lines without words."""
    turns: list[tuple[str, list[str]]] = []
    kinds = dict(others)
    new = False
    for place, speaker, text, is_new in said:
        new |= is_new
        if words := clean(text):
            if begins := new or not turns or turns[-1][0] != speaker:
                turns.append((speaker, []))
            turns[-1][1].append(words)
            kinds[place] = "used" if begins or kinds.get(place) == "used" else "merged"
            new = False
        kinds.setdefault(place, "note" if text else "layout")
    assert kinds.keys() == set(range(len(lines))), "a line is neither used nor skipped"
    joined = tuple(Turn(speaker, " ".join(words)) for speaker, words in turns)
    return Transcript(joined, lines, [kinds[place] for place in range(len(lines))], encoding)
