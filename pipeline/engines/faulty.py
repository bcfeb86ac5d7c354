"""Clients that fail as a plan says, on a clock that nobody waits for: what a deployed federation meets, simulated.

Around another engine, which trains those that train. All chances and times are drawn from (seed, client, round, when it
was asked), so that a training with faults ends with the same bits each time, also after a resumption.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import torch

from pipeline.engines.poisons import poisoned
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent, Travels, Update
from pipeline.federated.engine import Arrival, Asked, Engine, Failure, Losses
from pipeline.federated.faults import Faults
from pipeline.federated.wire import packed, unpacked
from pipeline.model.adapter import Adapter

Fate = Literal["answers", "never begins", "stops while training", "its answer is lost", "is too late", "is cut off"]


@dataclass(frozen=True, order=True)
class Outstanding:
    """A client that was asked: when the server hears of it, or gives it up, and why."""

    heard: float
    number: int
    asked: Asked
    fate: Fate


class Faulty:
    """See `Engine`.

    Args:
        deadline: seconds after which the server waits no longer; None: it waits for every answer.
        travels: what clients send, so that it can be turned round.

    Raises:
        QuorumError: some answers never come, and there is no deadline; or a poisoned client is none.
    """

    def __init__(
        self, engine: Engine, faults: Faults, deadline: float | None, *, seed: int, travels: Travels = "adapter"
    ) -> None:
        if faults.silent and deadline is None:
            raise QuorumError(
                "faults: some clients never answer, and without tolerance.deadline a server waits for ever; set it"
            )
        if strange := sorted(set(faults.poisoned) - set(engine.trainers)):
            raise QuorumError(f"faults.poisoned: {strange[0]!r} is no client of this training; correct it")
        self._engine, self._faults, self._deadline, self._seed = engine, faults, deadline, seed
        self._travels = travels
        self._outstanding: list[Outstanding] = []
        self._numbers = itertools.count()

    @property
    def trainers(self) -> Sequence[str]:
        return self._engine.trainers

    @property
    def scored(self) -> Mapping[str, str]:
        return self._engine.scored

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        self._engine.join(name, adapter, version)

    def submit(self, name: str, sent: Sent, version: int, at: float = 0.0) -> None:
        asked = Asked(name, sent, version, at)
        fate, heard = self._fate(asked)
        heapq.heappush(self._outstanding, Outstanding(heard, next(self._numbers), asked, fate))

    def arrivals(self) -> Iterator[Arrival | Failure]:
        while self._outstanding:
            yield from self._heard_of(heapq.heappop(self._outstanding))

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        return self._engine.score(names, server, began, version, unknown)

    def _heard_of(self, one: Outstanding) -> Iterator[Arrival | Failure]:
        asked = one.asked
        if one.fate in ("never begins", "stops while training"):
            yield Failure(asked.name, asked.version, one.fate, one.heard)
            return
        self._engine.submit(asked.name, asked.sent, asked.version, asked.at)
        for coming in self._engine.arrivals():
            if isinstance(coming, Failure) or one.fate in ("its answer is lost", "is too late"):
                yield Failure(asked.name, asked.version, one.fate, one.heard)
                continue
            arrival = replace(coming, at=one.heard)
            if one.fate == "is cut off":
                yield _cut(arrival)
                continue
            kind = self._faults.poisoned.get(asked.name)
            if kind is not None:
                arrival = poisoned(arrival, kind, self._unchanged(asked.sent), self._faults.strength)
            yield arrival
            if self._happens("duplicated", asked, self._faults.duplicated):
                yield arrival

    def _unchanged(self, sent: Sent) -> Adapter:
        """What a client would send whose training changes nothing."""
        if self._travels == "adapter":
            return sent.adapter
        return {name: torch.zeros_like(tensor) for name, tensor in sent.adapter.items()}

    def _fate(self, asked: Asked) -> tuple[Fate, float]:
        """What becomes of a client, and when the server knows."""
        faults = self._faults
        until = math.inf if self._deadline is None else asked.at + self._deadline
        if self._happens("dropout", asked, faults.dropout):
            return "never begins", until
        if self._happens("dropout during", asked, faults.dropout_during):
            return "stops while training", until
        if self._happens("lost", asked, faults.lost):
            return "its answer is lost", until
        done = asked.at + self._seconds(asked)
        if done > until:
            return "is too late", until
        if self._happens("truncated", asked, faults.truncated):
            return "is cut off", done
        return "answers", done

    def _seconds(self, asked: Asked) -> float:
        """How long a client takes: its own pace, the round's, and whether it straggles."""
        paces = self._normal(f"pace/{asked.name}") + self._normal(self._named("pace", asked))
        slow = self._faults.slowdown if self._happens("straggler", asked, self._faults.stragglers) else 1.0
        return self._faults.seconds * math.exp(self._faults.spread * paces) * slow

    def _happens(self, what: str, asked: Asked, chance: float) -> bool:
        return self._uniform(self._named(what, asked)) < chance

    def _named(self, what: str, asked: Asked) -> str:
        return f"{what}/{asked.name}/{asked.version}/{asked.at!r}"

    def _normal(self, name: str) -> float:
        return NormalDist().inv_cdf(self._uniform(name))

    def _uniform(self, name: str) -> float:
        """In (0, 1)."""
        digest = hashlib.sha256(f"{self._seed}/faults/{name}".encode()).digest()
        return (int.from_bytes(digest[:6], "big") + 0.5) / 2**48


def _cut(arrival: Arrival) -> Arrival | Failure:
    """What becomes of an answer of whose bytes only the first half arrives."""
    content = packed(arrival.update.adapter, arrival.update.memory)
    try:
        adapter, memory = unpacked(content[: len(content) // 2])
    except ValueError as error:
        return Failure(arrival.name, arrival.version, str(error), arrival.at)
    return replace(arrival, update=Update(adapter, arrival.update.examples, arrival.update.steps, memory))
