"""The default query, and words in messages."""

from collections.abc import Iterable
from difflib import get_close_matches

WHOLE = "Summarize the whole meeting."  # the query of a summary that has none


def nearest(name: str, known: Iterable[str], cutoff: float = 0.0) -> str:
    """The three known names that are spelt most like a name, as a list; empty if none reaches the cutoff (0 to 1).

    >>> nearest("fedavgg", ["fedavg", "fedkd"], cutoff=0.8)
    'fedavg'
    """
    return ", ".join(get_close_matches(name, sorted(set(known)), n=3, cutoff=cutoff))


def printable(text: str) -> str:
    r"""Escape control characters, which could move a terminal's cursor; line breaks and tabs stay.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def number(value: float, digits: int, sign: str = "") -> str:
    """As in `1,234.50` or `−0.20`; with the sign "+" as in `+0.51`. A number that is shown as 0 has no sign."""
    text = f"{value:{sign},.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.") else text.lstrip("+−")
