"""Words as published -> text as people write it; shared by the corpora's readers."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARKER = re.compile(r"\{\s*\w+\s*\}")
_SPELLED = re.compile(r"\b(?:[A-Za-z]_)+(?:[A-Za-z]\b)?")
_SPACES = re.compile(r"\s+")
_BEFORE = re.compile(r" (?=[,.?!:;%)]|n't\b|'(?:s|re|ve|ll|d|m|em)\b)", re.IGNORECASE)
_AFTER = re.compile(r"(?<=\() ")


def clean(text: str) -> str:
    """Drop transcription markers and join spelled-out letters, as QMSum's authors do before modelling.

    `{vocalsound}`, `{disfmarker}` and their like go; `L_C_D_` becomes `LCD`, `T_V_s` becomes `TVs`.
    """
    text = _MARKER.sub(" ", text)
    text = _SPELLED.sub(lambda match: match.group().replace("_", ""), text)
    return _SPACES.sub(" ", text).strip()


def joined(words: Sequence[str]) -> str:
    """Tokens of a treebank -> running text: `it 's fine .` becomes `it's fine.`"""
    return _AFTER.sub("", _BEFORE.sub("", clean(" ".join(words))))
