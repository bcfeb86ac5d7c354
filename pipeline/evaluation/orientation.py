"""What summaries cost nothing: the first three turns of the source, and three turns at random. Rows for orientation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from pipeline.corpora.example import Example, Turn

TURNS = 3


def lead(example: Example) -> str:
    """The first three turns."""
    return _text(example.turns[:TURNS])


def at_random(example: Example) -> str:
    """Three turns, in their order; a function of the example alone."""
    chosen = random.Random(example.id).sample(range(len(example.turns)), min(TURNS, len(example.turns)))
    return _text([example.turns[i] for i in sorted(chosen)])


def _text(turns: Sequence[Turn]) -> str:
    return " ".join(turn.text for turn in turns)


ROWS: dict[str, Callable[[Example], str]] = {"lead-3 turns": lead, "random turns": at_random}
