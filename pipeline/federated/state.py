"""Where a training stands after a round: the server's side, and what clients keep and never send."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from pipeline.federated.algorithm import ClientState, Owner, ServerState
from pipeline.federated.blobs import Blobs, Get, Put
from pipeline.federated.engine import Asked
from pipeline.federated.events import Event
from pipeline.federated.history import Round
from pipeline.federated.shelf import Form, Shelf
from pipeline.model.adapter import Adapter


@dataclass(frozen=True)
class Progress:
    """After a round.

    `least`: each client's least validation loss so far, by model (`Academic/local`), of the models that tables may be
    about; `stale`: how many rounds ago one of them last fell. `asked`: clients that still train for a buffer that takes
    answers of earlier rounds. `clock`: seconds since the training began, by the engine's clock, where it keeps one.
    """

    round: int
    server: ServerState
    least: Mapping[str, float] = field(default_factory=dict)
    stale: int = 0
    history: tuple[Round, ...] = ()
    events: tuple[Event, ...] = ()
    asked: tuple[Asked, ...] = ()
    clock: float = 0.0

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
    """Of all clients of one process; what is not in memory lies in `blobs`.

    `states`: training client -> state. `best`: whose model -> scored client -> its best round. `masks`: training client
    -> name -> round -> boolean (local epochs, items).
    """

    blobs: Blobs
    states: Shelf[ClientState]
    best: dict[Owner, Shelf[Best]] = field(default_factory=dict)
    masks: dict[str, dict[str, dict[int, Tensor]]] = field(default_factory=dict)

    @classmethod
    def begin(cls, blobs: Blobs, states: Mapping[str, ClientState]) -> Private:
        """Before the first round."""
        shelf = Shelf(blobs, STATES)
        shelf.update(states)
        return cls(blobs, shelf)

    def best_of(self, owner: Owner) -> Shelf[Best]:
        """Scored client -> its best round of one kind of model."""
        return self.best.setdefault(owner, Shelf(self.blobs, BESTS))

    def least_losses(self, owner: Owner) -> dict[str, float]:
        """Scored client -> the loss of its best round; no tensors are read for it."""
        best = self.best_of(owner)
        records = {name: best.recorded(name) for name in best}
        return {name: best[name].loss if record is None else record["loss"] for name, record in records.items()}


MODELS = ("adapter", "sent", "before")
"""The tensors of a client's best round."""


def _of_best(best: Best, put: Put) -> Any:
    return {"round": best.round, "loss": best.loss} | {model: put(getattr(best, model)) for model in MODELS}


def _to_best(record: Mapping[str, Any], get: Get) -> Best:
    return Best(record["round"], record["loss"], **{model: get(record[model]) for model in MODELS})


STATES: Form[ClientState] = Form(
    lambda state, put: [put(state.adapter), put(state.memory)], lambda record, get: ClientState(*map(get, record))
)
BESTS: Form[Best] = Form(_of_best, _to_best)
ADAPTERS: Form[Adapter] = Form(lambda adapter, put: put(adapter), lambda record, get: get(record))
"""How what a client keeps is written down."""
