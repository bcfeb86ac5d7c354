"""What the lines of a transcript say, and what became of each line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pipeline.corpora.conversation import Turn
from pipeline.corpora.speakers import UNKNOWN, Label
from pipeline.corpora.text import clean

Kind = Literal["used", "merged", "repeated", "layout", "header", "note", "unreadable"]
"""Of a line: it begins a turn; continues one; has only words of the cue before, which rolls on; is empty, a number,
times or a name above words; comes before the first words; is a remark of the tool; cannot be read."""
Part = tuple[int, Label, bool]
"""(Place of a line, from 0; its words, with their speaker if it names one; whether a line or cue begins with them)."""


@dataclass(frozen=True)
class Transcript:
    """The turns of a meeting, and its file: lines (or the turns of a JSON file), each with its kind."""

    turns: tuple[Turn, ...]
    lines: Sequence[str]
    kinds: Sequence[Kind]

    def __str__(self) -> str:
        """How many lines are of each kind, and the first of them."""
        found = []
        for kind in (kind for kind in get_args(Kind) if kind in self.kinds):
            first = self.kinds.index(kind)
            text = " ".join(self.lines[first][:200].split()) or "empty"
            begin = text if len(text) <= 30 else f"{text[:29]}…"
            found.append(f"{self.kinds.count(kind)} {kind} (line {first + 1}: {begin})")
        return f"{len(self.lines)} lines: {', '.join(found)}"


def transcript_of(
    parts: Iterable[Part], kinds: dict[int, Kind], lines: Sequence[str], *, labels_begin: bool = True
) -> Transcript:
    """Join words, in the order of the file, to turns. Who speaks goes on, but not where the tool names all speakers.

    Args:
        kinds: place -> kind of the lines without words.
        labels_begin: whether a label begins a turn, also after one of the same speaker.
    """
    turns: list[tuple[str, list[str]]] = []
    speaker, names_all, new = UNKNOWN, False, False
    for place, label, begins in parts:
        if label.name:
            speaker, names_all = label.name, label.names_all
        elif begins and names_all:
            speaker = UNKNOWN
        new |= (begins and speaker == UNKNOWN) or (labels_begin and label.name != "")
        if words := clean(label.words):
            if is_first := new or not turns or turns[-1][0] != speaker:
                turns.append((speaker, []))
            turns[-1][1].append(words)
            kinds[place] = "used" if is_first or kinds.get(place) == "used" else "merged"
            new = False
        kinds.setdefault(place, "note" if label.words else "layout")
    assert kinds.keys() == set(range(len(lines))), "a line is neither used nor skipped"
    joined = tuple(Turn(speaker, " ".join(words)) for speaker, words in turns)
    return Transcript(joined, lines, [kinds[place] for place in range(len(lines))])
