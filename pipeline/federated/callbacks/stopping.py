"""Ending a training: after a number of rounds, or when no model has improved for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.federated.callbacks import Callback
from pipeline.federated.state import Progress


@dataclass(frozen=True)
class Stopping(Callback):
    """Early stopping.

    Attributes:
        rounds: the largest number of rounds.
        patience: rounds without an improved model after which the training ends, unless a client has yet to join.
        joins: client -> the round in which it joins.
    """

    rounds: int
    patience: int
    joins: Mapping[str, int] = field(default_factory=dict)

    def is_over(self, progress: Progress) -> bool:
        waiting = any(number > progress.round for number in self.joins.values())
        return progress.round >= self.rounds or (progress.stale >= self.patience and not waiting)
