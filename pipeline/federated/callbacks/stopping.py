"""When a training is over: after so many rounds, or when nobody has improved for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.federated.callbacks import Callback
from pipeline.federated.state import Progress


@dataclass(frozen=True)
class Stopping(Callback):
    """At most so many `rounds`; or `patience` rounds without a better model, unless a client is still to join."""

    rounds: int
    patience: int
    joins: Mapping[str, int] = field(default_factory=dict)

    def is_over(self, progress: Progress) -> bool:
        expecting = any(number > progress.round for number in self.joins.values())
        return progress.round >= self.rounds or (progress.stale >= self.patience and not expecting)
