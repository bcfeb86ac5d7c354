"""Events of a training: missing, refused and repeated updates, skipped rounds, and how a buffer was filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EventKind = Literal["arrived", "missing", "refused", "repeated", "skipped"]


@dataclass(frozen=True)
class Event:
    """A row of events.csv: what happened to a client's update, or to a round (`client` is empty), and why.

    `at` is in seconds since the training began, on the engine's clock.
    """

    round: int
    client: str
    kind: EventKind
    why: str
    at: float = 0.0


EVENT_COLUMNS = ("round", "client", "kind", "why", "at")
"""The columns of events.csv."""
