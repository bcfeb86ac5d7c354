"""Published words -> text as people write it, and lines -> turns; shared by the corpora's readers."""

import re
from collections.abc import Iterable, Sequence

from pipeline.corpora.conversation import Turn

_MARKER = re.compile(r"\{\s*+\w++\s*+\}")
_SPELLED = re.compile(r"\b(?:[A-Za-z]_)+(?:[A-Za-z]\b)?")
_SPACES = re.compile(r"\s+")
_UNSOUND = re.compile("[\0\ud800-\udfff]")
_INVISIBLE = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_BEFORE = re.compile(r" (?=[,.?!:;%)]|n't\b|'(?:s|re|ve|ll|d|m|em)\b)", re.IGNORECASE)
_AFTER = re.compile(r"(?<=\() ")


def clean(text: str) -> str:
    """Drop transcription markers and join spelled-out letters, as QMSum's authors do before modelling.

    `{vocalsound}`, `{disfmarker}` and their like go; `L_C_D_` becomes `LCD`, `T_V_s` becomes `TVs`.
    """
    text = _MARKER.sub(" ", text)
    text = _SPELLED.sub(lambda match: match.group().replace("_", ""), text)
    return _SPACES.sub(" ", text).strip()


def visible(text: str) -> str:
    """Drop control characters, and those that only turn the direction of writing or mark where a line may break.

    Zero-width joiners stay: they are part of emoji and of words in some scripts.
    """
    return _INVISIBLE.sub("", text)


def normal(text: str) -> str:
    """A text in lower case with single spaces."""
    return " ".join(text.split()).lower()


def is_sound(value: object) -> bool:
    """Whether no text in nested tuples has a NUL or half of a surrogate pair: files and tokenizers refuse those."""
    if isinstance(value, tuple):
        return all(map(is_sound, value))
    return not isinstance(value, str) or _UNSOUND.search(value) is None


def joined(words: Sequence[str]) -> str:
    """Tokens of a treebank -> running text: `it 's fine .` becomes `it's fine.`"""
    return _AFTER.sub("", _BEFORE.sub("", clean(" ".join(words))))


def turns_of(lines: Iterable[tuple[str | None, str]], first: str) -> tuple[Turn, ...]:
    """Lines as (speaker, words) -> turns. A line without a speaker continues the turn before; lines without words go.

    `first`: the speaker of the first line, if it names none.
    """
    turns: list[tuple[str, list[str]]] = []
    for speaker, words in lines:
        if words and (speaker is not None or not turns):
            turns.append((first if speaker is None else speaker, [words]))
        elif words:
            turns[-1][1].append(words)
    return tuple(Turn(speaker, " ".join(parts)) for speaker, parts in turns)
