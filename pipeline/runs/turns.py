"""Turns of the source as a summary: rows of a table that train nothing and cost nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from pipeline.corpora.example import Example

TURNS = 3
"""Turns of a summary."""
Turns = Literal["lead", "random"]


def lead(example: Example) -> str:
    """The first three turns."""
    return " ".join(turn.text for turn in example.turns[:TURNS])


def at_random(example: Example) -> str:
    """Three random turns in their order; a function of the example alone."""
    chosen = random.Random(example.id).sample(range(len(example.turns)), min(TURNS, len(example.turns)))
    return " ".join(example.turns[i].text for i in sorted(chosen))


WRITERS: dict[Turns, Callable[[Example], str]] = {"lead": lead, "random": at_random}
