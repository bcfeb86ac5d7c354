"""Baselines that summarize a meeting by three of its turns, without any training."""

from __future__ import annotations

import random
from collections.abc import Callable

from pipeline.corpora.conversation import Conversation

TURNS = 3
"""The number of turns in a summary."""


def lead(example: Conversation) -> str:
    """Return the first three turns."""
    return " ".join(turn.text for turn in example.turns[:TURNS])


def at_random(example: Conversation) -> str:
    """Return three random turns in their order, drawn by the example's id."""
    chosen = random.Random(example.id).sample(range(len(example.turns)), min(TURNS, len(example.turns)))
    return " ".join(example.turns[i].text for i in sorted(chosen))


WRITERS: dict[str, Callable[[Conversation], str]] = {"lead": lead, "random": at_random}
