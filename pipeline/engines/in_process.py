"""All clients in this process, one after the other: the simulation."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Owner, Sent, Update
from pipeline.federated.engine import Arrival, Losses, Report
from pipeline.federated.randomness import Randomness
from pipeline.federated.shelf import Shelf
from pipeline.federated.state import ADAPTERS, Best, Private
from pipeline.federated.wire import travelled
from pipeline.model.adapter import Adapter


class EvaluatedData(Protocol):
    """A client's validation set."""

    def validation_loss(self, adapter: Adapter) -> float:
        """Mean loss a target token of the validation examples, in nats."""


class InProcess:
    """See `Engine`.

    Args:
        trained: the clients that train.
        evaluated: the clients that are scored, each on its own validation data.
        owner: scored client -> the one whose training makes its own model; itself where it is not named.
        job: the training's name, which every answer has.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        trained: Mapping[str, ClientData],
        evaluated: Mapping[str, EvaluatedData],
        private: Private,
        *,
        seed: int,
        owner: Mapping[str, str] | None = None,
        job: str = "",
    ) -> None:
        self.private, self._job = private, job
        self._algorithm, self._trained, self._evaluated, self._seed = algorithm, trained, evaluated, seed
        self._scored = {name: (owner or {}).get(name, name) for name in evaluated}
        self._owners = set(self._scored.values())
        self._waiting: deque[tuple[str, Sent, int, float]] = deque()
        self._on_the_wire: tuple[Sent, Sent, int] | None = None
        self._before, self._of_round = Shelf(private.blobs, ADAPTERS), 0
        self._least = {owner: private.least_losses(owner) for owner in private.best}

    @property
    def trainers(self) -> Sequence[str]:
        return list(self._trained)

    @property
    def scored(self) -> Mapping[str, str]:
        return self._scored

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        del version
        self.private.states[name] = ClientState(adapter)

    def submit(self, name: str, sent: Sent, version: int, at: float = 0.0) -> None:
        self._waiting.append((name, sent, version, at))

    def arrivals(self) -> Iterator[Arrival]:
        while self._waiting:
            yield self._trained_once(*self._waiting.popleft())

    def _trained_once(self, name: str, sent: Sent, version: int, at: float) -> Arrival:
        received, down = self._received(sent)
        rng = Randomness(self._seed, name, version)
        own = self.private.states[name] if self._keeps(name) else ClientState(received.adapter)
        if self._keeps(name):
            self.remember(name, own.adapter, version)
        state, update, trace = self._algorithm.client_update(received, own, self._trained[name], rng)
        if self._keeps(name):
            self.private.states[name] = state
        for mask, rows in trace.masks.items():
            self.private.masks.setdefault(name, {}).setdefault(mask, {})[version] = rows
        up = 0
        if self._algorithm.communicates:
            adapter, memory, up = travelled(update.adapter, update.memory)
            update = Update(adapter, update.examples, update.steps, memory)
        report = Report(trace.loss, trace.steps, trace.seconds, trace.figures, down, up)
        return Arrival(name, update, version, report, at, self._job)

    def _received(self, sent: Sent) -> tuple[Sent, int]:
        """What the server sent as it arrives, and its bytes; all are sent the same, so it is packed once."""
        if not self._algorithm.communicates:
            return sent, 0
        if self._on_the_wire is None or self._on_the_wire[0] is not sent:
            adapter, memory, size = travelled(sent.adapter, sent.memory)
            self._on_the_wire = sent, Sent(adapter, memory), size
        return self._on_the_wire[1:]

    def score(
        self,
        names: Sequence[str],
        server: Adapter | None,
        began: Adapter,
        version: int,
        unknown: Collection[str] = (),
    ) -> Mapping[str, Losses]:
        return {name: self._scored_once(name, server, began, version, name in unknown) for name in names}

    def _scored_once(self, name: str, server: Adapter | None, began: Adapter, version: int, unknown: bool) -> Losses:
        local = None
        if self.scored[name] in self._trained:
            own = self.private.states[self.scored[name]].adapter
            local = self._kept("local", name, own, began, version)
        return Losses(
            local,
            None if server is None else self._kept("server", name, server, began, version),
            self._loss(name, began) if unknown else None,
        )

    def _loss(self, name: str, adapter: Adapter) -> float:
        return self._evaluated[name].validation_loss(adapter)

    def _kept(self, owner: Owner, name: str, adapter: Adapter, began: Adapter, version: int) -> float:
        """The loss of a model; the client keeps the model if it is its best so far."""
        loss = self._loss(name, adapter)
        if not math.isfinite(loss):
            raise QuorumError(
                f"round {version}, client {name}: the validation loss is {loss}; lower learning_rate and run again, "
                "which begins anew",
                code="not_finite",
            )
        # Beside the shelf, whose best rounds are too large to be read for one number.
        least = self._least.setdefault(owner, {})
        if loss < least.get(name, math.inf):
            least[name] = loss
            before = self.began_with(self.scored[name], version)
            self.private.best_of(owner)[name] = Best(version, loss, adapter, began, before)
        return loss

    def _keeps(self, name: str) -> bool:
        """Whether a client's state outlives a round: the algorithm needs it, or its own model is scored."""
        return self._algorithm.keeps or name in self._owners

    def remember(self, name: str, own: Adapter, version: int) -> None:
        """With what a client begins a round; what it began the last one with is no longer asked for."""
        if version != self._of_round:
            self._before.clear()
            self._of_round = version
        states = self.private.states
        known = states.recorded(name) if name in states and states[name].adapter is own else None
        self._before.put(name, own, known and known[0])

    def began_with(self, name: str, version: int) -> Adapter:
        """A client's own adapter at the end of the round before; one that was idle still has it, the server none."""
        if version == self._of_round and name in self._before:
            return self._before[name]
        return self.private.states[name].adapter if name in self.private.states else {}
