"""What clients hold between rounds and never send."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from pipeline.federated.algorithm import ClientState, Owner
from pipeline.model.adapter import Adapter


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
