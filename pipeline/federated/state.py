"""The state of a training after a round: the server's, and what clients store and never send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientState, Owner, ServerState
from pipeline.federated.blobs import Blobs
from pipeline.federated.client_store import ClientStore
from pipeline.federated.engine import Assignment, Event
from pipeline.federated.figures import SERVER, Figures
from pipeline.federated.history import Round, check_names
from pipeline.federated.masks import Masks
from pipeline.model.adapter import Adapter


@dataclass(frozen=True)
class Progress:
    """The server's side of a training after a round.

    Attributes:
        round: the last finished round; 0 before the first.
        least: the least validation loss so far of each client and model that tables may show, as in `Academic/local`.
        stale: the number of rounds since one of them last fell.
        events: missing, refused and repeated updates.
        pending: assignments of earlier rounds whose answers a buffer still takes.
        clock: seconds since the training began, if the engine has a clock.
    """

    round: int
    server: ServerState
    least: Mapping[str, float] = field(default_factory=dict)
    stale: int = 0
    history: tuple[Round, ...] = ()
    events: tuple[Event, ...] = ()
    pending: tuple[Assignment, ...] = ()
    clock: float = 0.0

    @property
    def last(self) -> list[Round]:
        """The rows of the last round, one per client."""
        return [row for row in self.history if row.round == self.round]

    def with_figures(self, figures: Figures) -> Progress:
        """The same progress with figures in the rows of the last round.

        `NAME` is a figure of the server and becomes `server/NAME` in every row; `CLIENT/NAME` becomes `NAME` in the
        row of that client.

        Raises QuorumError if a name is a column of the history, or its client has no row in the round.
        """
        rows = self.last
        if not figures or not rows:
            return self
        added: dict[str, dict[str, float]] = {row.client: {} for row in rows}
        for key, value in figures.items():
            client, _, name = key.rpartition("/")
            check_names([name], [])
            if client and client not in added:
                raise QuorumError(
                    f"figure {key!r}: {client!r} has no row in round {self.round}; name one of its clients"
                )
            if client:
                added[client][name] = value
            else:
                for own in added.values():
                    own[SERVER + name] = value
        found = (replace(row, figures={**row.figures, **added[row.client]}) for row in rows)
        return replace(self, history=(*self.history[: -len(rows)], *found))


@dataclass(frozen=True)
class Best:
    """A client's best round so far, by its own validation loss in nats per token.

    `sent` is the server's adapter at the start of the round, `before` the client's own at the end of the round before.
    """

    round: int
    loss: float
    adapter: Adapter
    sent: Adapter
    before: Adapter


@dataclass
class Private:
    """What the clients of one process store.

    Attributes:
        blobs: their tensors.
        states: training client -> its state.
        best: kind of model -> scored client -> its best round.
        masks: of the training clients.
    """

    blobs: Blobs
    states: ClientStore[ClientState]
    best: dict[Owner, ClientStore[Best]] = field(default_factory=dict)
    masks: Masks = field(default_factory=dict)

    @classmethod
    def begin(cls, blobs: Blobs, states: Mapping[str, ClientState]) -> Private:
        """The state before the first round."""
        store = ClientStore(blobs, ClientState)
        store.update(states)
        return cls(blobs, store)

    def best_of(self, owner: Owner) -> ClientStore[Best]:
        """Scored client -> its best round by one kind of model."""
        return self.best.setdefault(owner, ClientStore(self.blobs, Best))
