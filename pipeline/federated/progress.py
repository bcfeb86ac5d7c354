"""How far a training has come: all that the server's next round depends on, and the record of those before."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.federated.algorithm import ServerState
from pipeline.federated.history import Round


@dataclass(frozen=True)
class Progress:
    """After a round.

    `least`: each client's least validation loss so far of the model that the algorithm is judged by; `stale`: how many
    rounds ago one of them last fell.
    """

    round: int
    server: ServerState
    least: Mapping[str, float] = field(default_factory=dict)
    stale: int = 0
    history: tuple[Round, ...] = ()

    @property
    def last(self) -> list[Round]:
        """The last round's rows, a client each."""
        rows = itertools.takewhile(lambda row: row.round == self.round, reversed(self.history))
        return list(rows)[::-1]
