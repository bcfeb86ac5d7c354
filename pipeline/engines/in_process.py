"""The simulation: all clients in this process, one after the other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Owner, Sent, Update
from pipeline.federated.client_store import ClientStore
from pipeline.federated.engine import Arrival, Losses, Report
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import ADAPTERS, Best, Private
from pipeline.federated.wire import transmitted
from pipeline.model.adapter import Adapter


class EvaluatedData(Protocol):
    """A client's validation set."""

    def validation_loss(self, adapter: Adapter) -> float:
        """WeightedMean loss a target token of the validation examples, in nats."""


class InProcess:
    """An `Engine` whose clients train in this process.

    Args:
        algorithm: what a client does in a round.
        trained: the clients that train.
        evaluated: the clients that are scored, each on its own validation examples.
        private: what clients store.
        seed: determines the clients' random numbers.
        trained_by: scored client -> the client that trains its own model; itself if it has no entry.
        job: the training's name, which every answer repeats.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        trained: Mapping[str, ClientData],
        evaluated: Mapping[str, EvaluatedData],
        private: Private,
        *,
        seed: int,
        trained_by: Mapping[str, str] | None = None,
        job: str = "",
    ) -> None:
        self.private, self._job = private, job
        self._algorithm, self._trained, self._evaluated, self._seed = algorithm, trained, evaluated, seed
        self._scored = {name: (trained_by or {}).get(name, name) for name in evaluated}
        self._model_owners = set(self._scored.values())
        self._assignments: deque[tuple[str, Sent, int, float]] = deque()
        self._last_sent: tuple[Sent, Sent, int] | None = None
        self._before, self._before_round = ClientStore(private.blobs, ADAPTERS), 0
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
        self._assignments.append((name, sent, version, at))

    def arrivals(self) -> Iterator[Arrival]:
        while self._assignments:
            yield self._train(*self._assignments.popleft())

    def _train(self, name: str, sent: Sent, version: int, at: float) -> Arrival:
        received, down = self._received(sent)
        rng = Randomness(self._seed, name, version)
        own = self.private.states[name] if self._has_state(name) else ClientState(received.adapter)
        if self._has_state(name):
            self.remember(name, own.adapter, version)
        state, update, trace = self._algorithm.client_update(received, own, self._trained[name], rng)
        if self._has_state(name):
            self.private.states[name] = state
        for mask, rows in trace.masks.items():
            self.private.masks.setdefault(name, {}).setdefault(mask, {})[version] = rows
        up = 0
        if self._algorithm.communicates:
            adapter, memory, up = transmitted(update.adapter, update.memory)
            update = Update(adapter, update.examples, update.steps, memory)
        report = Report(trace.loss, trace.steps, trace.seconds, trace.figures, down, up)
        return Arrival(name, update, version, report, at, self._job)

    def _received(self, sent: Sent) -> tuple[Sent, int]:
        """A copy of what the server sent, and its bytes. All clients are sent the same, so it is copied once."""
        if not self._algorithm.communicates:
            return sent, 0
        if self._last_sent is None or self._last_sent[0] is not sent:
            adapter, memory, size = transmitted(sent.adapter, sent.memory)
            self._last_sent = sent, Sent(adapter, memory), size
        return self._last_sent[1:]

    def score(
        self,
        names: Sequence[str],
        server: Adapter | None,
        began: Adapter,
        version: int,
        unknown: Collection[str] = (),
    ) -> Mapping[str, Losses]:
        return {name: self._score(name, server, began, version, name in unknown) for name in names}

    def _score(self, name: str, server: Adapter | None, began: Adapter, version: int, unknown: bool) -> Losses:
        local = None
        if self.scored[name] in self._trained:
            own = self.private.states[self.scored[name]].adapter
            local = self._save_if_best("local", name, own, began, version)
        return Losses(
            local,
            None if server is None else self._save_if_best("server", name, server, began, version),
            self._loss(name, began) if unknown else None,
        )

    def _loss(self, name: str, adapter: Adapter) -> float:
        return self._evaluated[name].validation_loss(adapter)

    def _save_if_best(self, owner: Owner, name: str, adapter: Adapter, began: Adapter, version: int) -> float:
        """The validation loss of a model in nats per token; the client saves the model if it is its best so far."""
        loss = self._loss(name, adapter)
        if not math.isfinite(loss):
            raise QuorumError(
                f"round {version}, client {name}: the validation loss is {loss}; lower learning_rate and run again, "
                "which starts over",
                code="not_finite",
            )
        # In a dict of their own: reading a best round from disk for its loss would take too long.
        least = self._least.setdefault(owner, {})
        if loss < least.get(name, math.inf):
            least[name] = loss
            before = self.began_with(self.scored[name], version)
            self.private.best_of(owner)[name] = Best(version, loss, adapter, began, before)
        return loss

    def _has_state(self, name: str) -> bool:
        """Whether a client's state is stored between rounds: the algorithm needs it, or its own model is scored."""
        return self._algorithm.stateful or name in self._model_owners

    def remember(self, name: str, own: Adapter, version: int) -> None:
        """Note a client's own adapter at the start of a round; those of the round before are dropped."""
        if version != self._before_round:
            self._before.clear()
            self._before_round = version
        states = self.private.states
        record = states.existing_record(name) if name in states and states[name].adapter is own else None
        self._before.put(name, own, record and record[0])

    def began_with(self, name: str, version: int) -> Adapter:
        """A client's own adapter at the start of a round, which an idle client still has; empty for the server."""
        if version == self._before_round and name in self._before:
            return self._before[name]
        return self.private.states[name].adapter if name in self.private.states else {}
