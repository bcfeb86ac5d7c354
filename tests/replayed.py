"""Replaying a buffered training: answers arrive in the order that a deployed server recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from pipeline.federated.engine import Arrival, Assignment, Engine, Event, Failure


class Replayed:
    """An `Engine` that wraps another, and trains a client when its recorded answer is due.

    Args:
        engine: trains the clients.
        events: the recorded events. Arrivals and missing answers are repeated in their order.
    """

    def __init__(self, engine: Engine, events: Iterable[Event]) -> None:
        self._engine = engine
        self.trainers, self.scored, self.join, self.score = engine.trainers, engine.scored, engine.join, engine.score
        self._due = deque(event for event in events if event.kind in ("arrived", "missing"))
        self._pending: dict[str, Assignment] = {}

    def submit(self, assignment: Assignment) -> None:
        self._pending[assignment.name] = assignment

    def arrivals(self) -> Iterator[Arrival | Failure]:
        while self._pending and self._due:
            event = self._due.popleft()
            assignment = self._pending.pop(event.client)
            if event.kind == "missing":
                yield Failure(assignment.name, assignment.version, event.why, assignment.at)
                continue
            self._engine.submit(assignment)
            yield from self._engine.arrivals()
