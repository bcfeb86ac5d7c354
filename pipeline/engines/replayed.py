"""A training's answers in the order in which they once came: what a deployed server's buffer saw, made again."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent
from pipeline.federated.engine import Arrival, Asked, Engine, Failure, Losses
from pipeline.federated.events import Event
from pipeline.model.adapter import Adapter


class Replayed:
    """See `Engine`: around another one, which trains a client when its answer is due.

    Args:
        events: those of the training that is made again; its arrivals and missing answers are taken in their order.
    """

    def __init__(self, engine: Engine, events: Iterable[Event]) -> None:
        self._engine = engine
        self._due = deque(event for event in events if event.kind in ("arrived", "missing"))
        self._asked: dict[str, Asked] = {}

    @property
    def trainers(self) -> Sequence[str]:
        return self._engine.trainers

    @property
    def scored(self) -> Mapping[str, str]:
        return self._engine.scored

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        self._engine.join(name, adapter, version)

    def submit(self, name: str, sent: Sent, version: int, at: float = 0.0) -> None:
        self._asked[name] = Asked(name, sent, version, at)

    def arrivals(self) -> Iterator[Arrival | Failure]:
        """
        Raises:
            QuorumError: an answer is due that nobody was asked for: the record is of another training.
        """
        while self._asked and self._due:
            event = self._due.popleft()
            asked = self._asked.pop(event.client, None)
            if asked is None:
                raise QuorumError(
                    f"round {event.round}: {event.client} was not asked here; replay it with its own order"
                )
            if event.kind == "missing":
                yield Failure(asked.name, asked.version, event.why, asked.at)
                continue
            self._engine.submit(asked.name, asked.sent, asked.version, asked.at)
            yield from self._engine.arrivals()

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        return self._engine.score(names, server, began, version, unknown)
