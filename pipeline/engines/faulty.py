"""Simulating faults of clients and their durations, on a simulated clock.

All faults and durations are drawn from (seed, client, round, time of the assignment), so that a training with faults
has the same bits each time, also if it is resumed.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import torch

from pipeline.engines.poisons import poisoned
from pipeline.engines.wrapper import EngineWrapper
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientSends, Sent, Update
from pipeline.federated.engine import Arrival, Assignment, Engine, Failure
from pipeline.federated.faults import Faults
from pipeline.federated.wire import deserialize, serialize
from pipeline.model.adapter import Adapter

Fate = Literal["answers", "never begins", "stops while training", "its answer is lost", "is too late", "is cut off"]


@dataclass(frozen=True, order=True)
class Outstanding:
    """An assignment, its fate, and when the server notices it, in order of time and then of assignment."""

    noticed: float
    number: int
    assignment: Assignment
    fate: Fate


class Faulty(EngineWrapper):
    """An `Engine` that wraps another, and injects faults into its clients' answers.

    Args:
        engine: trains the clients that do not fail before.
        faults: which faults, and how long clients take.
        deadline: seconds after which the server stops waiting for an answer; None: it waits for every answer.
        seed: determines faults and durations.
        sends: what clients send, which a `reversed` update needs to know.

    Raises:
        QuorumError: some answers never arrive and there is no deadline, or a poisoned client is unknown.
    """

    def __init__(
        self, engine: Engine, faults: Faults, deadline: float | None, *, seed: int, sends: ClientSends = "adapter"
    ) -> None:
        if faults.silent and deadline is None:
            raise QuorumError(
                "faults: some clients never answer, so the server would wait forever; set tolerance.deadline"
            )
        if unknown := sorted(set(faults.poisoned) - set(engine.trainers)):
            raise QuorumError(f"faults.poisoned: {unknown[0]!r} is not a client of this training; correct the name")
        super().__init__(engine)
        self._faults, self._deadline, self._seed, self._sends = faults, deadline, seed, sends
        self._outstanding: list[Outstanding] = []
        self._numbers = itertools.count()

    def submit(self, name: str, sent: Sent, version: int, at: float = 0.0) -> None:
        assignment = Assignment(name, sent, version, at)
        fate, noticed = self._fate(assignment)
        heapq.heappush(self._outstanding, Outstanding(noticed, next(self._numbers), assignment, fate))

    def arrivals(self) -> Iterator[Arrival | Failure]:
        while self._outstanding:
            yield from self._results(heapq.heappop(self._outstanding))

    def _results(self, one: Outstanding) -> Iterator[Arrival | Failure]:
        """What the server receives of an assignment: nothing, one answer, or two."""
        assignment = one.assignment
        if one.fate in ("never begins", "stops while training"):
            yield Failure(assignment.name, assignment.version, one.fate, one.noticed)
            return
        self._engine.submit(assignment.name, assignment.sent, assignment.version, assignment.at)
        for answer in self._engine.arrivals():
            if isinstance(answer, Failure) or one.fate in ("its answer is lost", "is too late"):
                yield Failure(assignment.name, assignment.version, one.fate, one.noticed)
                continue
            arrival = replace(answer, at=one.noticed)
            if one.fate == "is cut off":
                yield _truncated(arrival)
                continue
            kind = self._faults.poisoned.get(assignment.name)
            if kind is not None:
                arrival = poisoned(arrival, kind, self._unchanged(assignment.sent), self._faults.strength)
            yield arrival
            if self._happens("duplicated", assignment, self._faults.duplicated):
                yield arrival

    def _unchanged(self, sent: Sent) -> Adapter:
        """What a client would send if its training changed nothing."""
        if self._sends == "adapter":
            return sent.adapter
        return {name: torch.zeros_like(tensor) for name, tensor in sent.adapter.items()}

    def _fate(self, assignment: Assignment) -> tuple[Fate, float]:
        """An assignment's fate, and when the server notices it."""
        faults = self._faults
        until = math.inf if self._deadline is None else assignment.at + self._deadline
        if self._happens("dropout", assignment, faults.dropout):
            return "never begins", until
        if self._happens("dropout during", assignment, faults.dropout_during):
            return "stops while training", until
        if self._happens("lost", assignment, faults.lost):
            return "its answer is lost", until
        done = assignment.at + self._seconds(assignment)
        if done > until:
            return "is too late", until
        if self._happens("truncated", assignment, faults.truncated):
            return "is cut off", done
        return "answers", done

    def _seconds(self, assignment: Assignment) -> float:
        """How long an assignment takes: the median times factors of the client, the assignment, and a straggler."""
        paces = self._normal(f"pace/{assignment.name}") + self._normal(self._named("pace", assignment))
        slow = self._faults.slowdown if self._happens("straggler", assignment, self._faults.stragglers) else 1.0
        return self._faults.seconds * math.exp(self._faults.spread * paces) * slow

    def _happens(self, what: str, assignment: Assignment, chance: float) -> bool:
        return self._uniform(self._named(what, assignment)) < chance

    def _named(self, what: str, assignment: Assignment) -> str:
        return f"{what}/{assignment.name}/{assignment.version}/{assignment.at!r}"

    def _normal(self, name: str) -> float:
        return NormalDist().inv_cdf(self._uniform(name))

    def _uniform(self, name: str) -> float:
        """A uniform random number in (0, 1), by name."""
        digest = hashlib.sha256(f"{self._seed}/faults/{name}".encode()).digest()
        return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48


def _truncated(arrival: Arrival) -> Arrival | Failure:
    """What the server receives if only the first half of an answer's bytes arrives."""
    content = serialize(arrival.update.adapter, arrival.update.memory)
    try:
        adapter, memory = deserialize(content[: len(content) // 2])
    except ValueError as error:
        return Failure(arrival.name, arrival.version, str(error), arrival.at)
    return replace(arrival, update=Update(adapter, arrival.update.examples, arrival.update.steps, memory))
