"""Where a training stands after a round: the server's side, and what clients hold and never send."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from pipeline.federated.algorithm import ClientState, Owner, ServerState
from pipeline.federated.history import Round
from pipeline.model.adapter import Adapter


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


@dataclass(frozen=True)
class Best:
    """A client's best round so far, by its own validation loss.

    `sent` is the adapter that the round began with, `before` the client's own at the end of the round before.
    """

    round: int
    loss: float
    adapter: Adapter
    sent: Adapter
    before: Adapter


@dataclass
class Private:
    """Of all clients of one process.

    `states`: training client -> state. `best`: whose model -> scored client -> its best round. `masks`: training client
    -> name -> round -> boolean (local epochs, items).
    """

    states: dict[str, ClientState]
    best: dict[Owner, dict[str, Best]] = field(default_factory=dict)
    masks: dict[str, dict[str, dict[int, Tensor]]] = field(default_factory=dict)
