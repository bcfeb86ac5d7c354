"""The simulation: all clients in this process, one after the other."""

import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Protocol

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Owner, Sent
from pipeline.federated.engine import Arrival, Assignment, Losses
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import Best, Private
from pipeline.federated.wire import transmitted
from pipeline.model.adapter import Adapter


class EvaluatedData(Protocol):
    """A client's validation set."""

    def validation_loss(self, adapter: Adapter) -> float:
        """Mean loss a target token of the validation examples, in nats."""


class InProcess:
    """An `Engine` whose clients train in this process.

    Args:
        trained: the clients that train; if the algorithm pools data, the one client that has all.
        evaluated: the clients that are scored, each on its own validation examples.
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
        job: str = "",
    ) -> None:
        self.private, self._job = private, job
        self._algorithm, self._trained, self._evaluated, self._seed = algorithm, trained, evaluated, seed
        self.trainers: Mapping[str, int] = {name: data.examples for name, data in trained.items()}
        self.scored: Mapping[str, str] = {name: next(iter(trained)) if algorithm.pooled else name for name in evaluated}
        self._model_owners = set(self.scored.values())
        self._assignments = deque[Assignment]()
        self._last_sent: tuple[Sent, Sent, int] | None = None
        self.before: dict[str, tuple[int, str]] = {}
        """Client -> the last round that it trained in, and the blob of its own adapter at the start of that round."""

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        del version
        self.private.states[name] = ClientState(adapter)

    def submit(self, assignment: Assignment) -> None:
        self._assignments.append(assignment)

    def arrivals(self) -> Iterator[Arrival]:
        while self._assignments:
            yield self._train(self._assignments.popleft())

    def _train(self, assignment: Assignment) -> Arrival:
        name, version = assignment.name, assignment.version
        received, down = self._received(assignment.sent)
        # A client's state is stored if the algorithm needs it, or if its own model is scored.
        stored = self._algorithm.stateful or name in self._model_owners
        own = self.private.states[name] if stored else ClientState(received.adapter)
        if stored:
            self.before[name] = version, self.private.states.records[name]["adapter"]
        rng = Randomness(self._seed, name, version)
        state, update, trace = self._algorithm.client_update(received, own, self._trained[name], rng)
        if stored:
            self.private.states[name] = state
        for mask, rows in trace.masks.items():
            self.private.masks[f"{name}/{mask}/{version}"] = rows
        up = 0
        if self._algorithm.communicates:
            update, up = transmitted(update)
        trace = replace(trace, masks={}, bytes_down=down, bytes_up=up)
        return Arrival(name, update, version, trace, assignment.at, self._job)

    def _received(self, sent: Sent) -> tuple[Sent, int]:
        """A copy of what the server sent, and its bytes; of what several clients are sent one copy."""
        if not self._algorithm.communicates:
            return sent, 0
        if self._last_sent is None or self._last_sent[0] is not sent:
            self._last_sent = sent, *transmitted(sent)
        return self._last_sent[1:]

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str] = ()
    ) -> Mapping[str, Losses]:
        found = {}
        for name in names:
            local = at_server = None
            if (trainer := self.scored[name]) in self._trained:
                local = self._save_if_best("local", name, self.private.states[trainer].adapter, began, version)
            elif self._algorithm.evaluates == "local":  # no client's examples: those of all, for each of its models
                trained = (client for client, (last, _) in self.before.items() if last == version)
                losses = (self._loss(name, self.private.states[one].adapter, version) for one in trained)
                local = fmean([*losses] or [math.nan])
            if server is not None:
                at_server = self._save_if_best("server", name, server, began, version)
            before = self._evaluated[name].validation_loss(began) if name in unknown else None
            found[name] = Losses(local, at_server, before)
        return found

    def _save_if_best(self, owner: Owner, name: str, adapter: Adapter, began: Adapter, version: int) -> float:
        """The validation loss of a model in nats per token; the client saves the model if it is its best so far."""
        loss = self._loss(name, adapter, version)
        best = self.private.best_of(owner)
        if name not in best or loss < best.records[name]["loss"]:
            before = self.private.blobs.get(self.began_with(self.scored[name], version))
            best[name] = Best(version, loss, adapter, began, before)
        return loss

    def _loss(self, name: str, adapter: Adapter, version: int) -> float:
        loss = self._evaluated[name].validation_loss(adapter)
        if not math.isfinite(loss):
            raise QuorumError(
                f"round {version}, client {name}: the validation loss is {loss}; lower learning_rate and run again, "
                "which starts over",
                code="not_finite",
            )
        return loss

    def began_with(self, name: str, version: int) -> str:
        """The blob of a client's own adapter at the start of a round, which an idle client still has, if it has one."""
        trained, blob = self.before.get(name, (0, ""))
        return blob if trained == version else str(self.private.states.records.get(name, {}).get("adapter", ""))
