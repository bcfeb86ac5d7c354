"""What went wrong in a training and what was done about it, and how a buffer was filled: a line an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["arrived", "missing", "refused", "repeated", "skipped"]


@dataclass(frozen=True)
class Event:
    """In a round, of a client where it is of one. `at`: seconds since the training began, by the engine's clock."""

    round: int
    client: str
    kind: Kind
    why: str
    at: float = 0.0


COLUMNS = ("round", "client", "kind", "why", "at")
"""Of events.csv."""
