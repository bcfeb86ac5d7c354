"""What the lines of a transcript say, and what became of each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pipeline.corpora.conversation import Turn
from pipeline.corpora.encodings import UTF8
from pipeline.corpora.text import clean

Kind = Literal["used", "merged", "repeated", "layout", "header", "note", "unreadable"]
"""Of a line: it begins a turn; continues one; has only words of the cue before, which rolls on; is empty, a number, times
or a name above words; stands before the first words; is a remark of the tool; cannot be read."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Said:
    """Words of one line. `place`: the line, from 0; `new`: whether they begin a turn also after the same speaker's."""

    place: int
    speaker: str
    words: str
    new: bool = False


@dataclass(frozen=True)
class Transcript:
    """The turns of a meeting, and its file: lines (or the turns of a JSON file), each with its kind; the encoding."""

    turns: tuple[Turn, ...]
    lines: tuple[str, ...]
    kinds: tuple[Kind, ...]
    encoding: str = UTF8

    def __str__(self) -> str:
        """The number of lines of each kind, and the first one."""
        counts = Counter(self.kinds)
        firsts = {kind: self.kinds.index(kind) for kind in KINDS if counts[kind]}
        found = (f"{counts[kind]} {kind} (line {at + 1}: {_begin(self.lines[at])})" for kind, at in firsts.items())
        encoding = "" if self.encoding == UTF8 else f", read as {self.encoding}"
        return f"{len(self.lines)} lines{encoding}: {', '.join(found)}"


def _begin(line: str) -> str:
    """
    >>> _begin("How much is left of the budget for this year?"), _begin("")
    ('How much is left of the budge…', 'empty')
    """
    text = " ".join(line[:200].split())
    return f"{text[:29]}…" if len(text) > 30 else text or "empty"


def transcript_of(
    said: Iterable[Said], others: dict[int, Kind], lines: Sequence[str], encoding: str = UTF8
) -> Transcript:
    """Join what is said to turns.

    Args:
        said: in the order of the file.
        others: place -> kind of the lines that say nothing.
    """
    turns: list[tuple[str, list[str]]] = []
    kinds = dict(others)
    new = False
    for one in said:
        new |= one.new
        if words := clean(one.words):
            begins = new or not turns or turns[-1][0] != one.speaker
            if begins:
                turns.append((one.speaker, []))
            turns[-1][1].append(words)
            kinds[one.place] = "used" if begins or kinds.get(one.place) == "used" else "merged"
            new = False
        kinds.setdefault(one.place, "note" if one.words else "layout")
    missing = set(range(len(lines))) - kinds.keys()
    assert not missing, f"lines {sorted(missing)[:3]} are neither used nor skipped"
    joined = tuple(Turn(speaker, " ".join(words)) for speaker, words in turns)
    return Transcript(joined, tuple(lines), tuple(kinds[place] for place in range(len(lines))), encoding)
