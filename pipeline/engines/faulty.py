"""Simulating faults of clients and their durations, on a simulated clock.

All faults and durations are drawn from (seed, client, round, time of the assignment), so that a training with faults
has the same bits each time, also if it is resumed.
"""

import hashlib
import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientSends
from pipeline.federated.engine import Arrival, Assignment, Engine, Failure
from pipeline.federated.faults import Faults, Poison
from pipeline.federated.wire import DAMAGED
from pipeline.model.adapter import Adapter

UNTRAINED, ANSWERS = ("never begins", "stops while training"), "answers"
"""Fates of an assignment. The others are those of a finished training whose answer does not arrive."""


@dataclass(frozen=True, order=True)
class Outstanding:
    """An assignment, its fate, and when the server notices it, in order of time and then of assignment."""

    noticed: float
    number: int
    assignment: Assignment
    fate: str


class Faulty:
    """An `Engine` that wraps another, and injects faults into its clients' answers.

    Args:
        deadline: seconds after which the server stops waiting for an answer; None: it waits for every answer.
        seed: determines faults and durations.
        sends: what clients send, which a `reversed` update needs to know.

    Raises QuorumError if some answers never arrive and there is no deadline, or a poisoned client is unknown.
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
        self._engine = engine
        self.trainers, self.scored, self.join, self.score = engine.trainers, engine.scored, engine.join, engine.score
        self._faults, self._deadline, self._seed, self._sends = faults, deadline, seed, sends
        self._outstanding: list[Outstanding] = []
        self._numbers = itertools.count()

    def submit(self, assignment: Assignment) -> None:
        fate, noticed = self._fate(assignment)
        heapq.heappush(self._outstanding, Outstanding(noticed, next(self._numbers), assignment, fate))

    def arrivals(self) -> Iterator[Arrival | Failure]:
        while self._outstanding:
            yield from self._results(heapq.heappop(self._outstanding))

    def _results(self, one: Outstanding) -> Iterator[Arrival | Failure]:
        """What the server receives of an assignment: nothing, one answer, or two."""
        assignment, name = one.assignment, one.assignment.name
        failure = Failure(name, assignment.version, one.fate, one.noticed)
        if one.fate in UNTRAINED:
            yield failure
            return
        self._engine.submit(assignment)
        for answer in self._engine.arrivals():
            if isinstance(answer, Failure) or one.fate != ANSWERS:
                yield failure
                continue
            arrival = replace(answer, at=one.noticed)
            if (kind := self._faults.poisoned.get(name)) is not None:
                origin = assignment.sent.adapter if self._sends == "adapter" else {}
                arrival = poisoned(arrival, kind, origin, self._faults.strength)
            yield arrival
            if self._happens("duplicated", assignment, self._faults.duplicated):
                yield arrival

    def _fate(self, assignment: Assignment) -> tuple[str, float]:
        """An assignment's fate, and when the server notices it."""
        faults = self._faults
        until = math.inf if self._deadline is None else assignment.at + self._deadline
        for what, chance, fate in (
            ("dropout", faults.dropout, "never begins"),
            ("dropout during", faults.dropout_during, "stops while training"),
            ("lost", faults.lost, "its answer is lost"),
        ):
            if self._happens(what, assignment, chance):
                return fate, until
        done = assignment.at + self._seconds(assignment)
        if done > until:
            return "is too late", until
        return DAMAGED if self._happens("truncated", assignment, faults.truncated) else ANSWERS, done

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


Corruption = Callable[[Adapter, Adapter, float], Adapter]
"""(what a client sends, the adapter that it was sent or none if it sends a change, strength) -> what arrives."""


def poisoned(arrival: Arrival, kind: Poison, origin: Adapter, strength: float) -> Arrival:
    """The same answer, corrupted; `origin` is the adapter that the client was sent, empty if it sends a change."""
    if kind == "foreign":
        return replace(arrival, job=f"not {arrival.job}")
    adapter = CORRUPTIONS[kind](arrival.update.adapter, origin, strength)
    return replace(arrival, update=replace(arrival.update, adapter=adapter))


def _reversed(adapter: Adapter, origin: Adapter, strength: float) -> Adapter:
    """The change in the other direction, and `strength` times as long."""
    start = origin or {name: torch.zeros_like(tensor) for name, tensor in adapter.items()}
    return {name: start[name] - strength * (tensor - start[name]) for name, tensor in adapter.items()}


def _with_first(change: Callable[[Tensor], Tensor]) -> Corruption:
    """Change the first tensor."""
    return lambda adapter, *_: {**adapter, min(adapter): change(adapter[min(adapter)])}


def _with_number(value: float) -> Corruption:
    """Replace the first number of the first tensor."""
    return _with_first(lambda w: torch.cat([torch.full((1,), value, dtype=w.dtype), w.flatten()[1:]]).view_as(w))


CORRUPTIONS: dict[Poison, Corruption] = {
    "nan": _with_number(math.nan),
    "inf": _with_number(math.inf),
    "huge": _with_number(1e30),
    "shape": _with_first(lambda w: torch.cat([w.flatten(), torch.zeros(1)])),
    "names": lambda adapter, *_: {f"other.{name}": tensor for name, tensor in adapter.items()},
    "reversed": _reversed,
}
