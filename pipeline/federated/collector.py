"""Collecting the updates of a round: which ones count, whom to assign again, and whether there are enough.

A synchronous round yields its updates in the order of the clients' names, so that sums have the same bits in any
order of the answers. A buffered round yields them in the order of arrival, also those of earlier rounds.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipeline.federated.algorithm import Algorithm, Sent, Trace, Update
from pipeline.federated.engine import Arrival, Assignment, Engine, Event, EventKind, Failure
from pipeline.federated.inspection import refusal
from pipeline.federated.tolerance import Tolerance


class TooFewUpdatesError(Exception):
    """A round has fewer good updates than it needs; the message gives the reasons."""


@dataclass
class UpdateCollector:
    """Collects one round's updates.

    Attributes:
        sent: what the server sends to this round's clients; a list has one for each, in their order.
        pending: client -> its outstanding assignment, of this round and, with a buffer, of earlier ones.
        clock: seconds since the training began.
        own: client -> what it is sent, where that is not the same for all.
        traces: client -> its trace, of the updates that counted.
        events: what went wrong, and how the buffer was filled.
    """

    engine: Engine
    algorithm: Algorithm
    rules: Tolerance
    job: str
    round: int
    sent: Sent | Sequence[Sent]
    pending: dict[str, Assignment]
    clock: float
    own: dict[str, Sent] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def in_order(self, names: Sequence[str]) -> Iterator[Update]:
        """Assign all of these clients, and yield their updates in this order; an early one waits for its turn.

        Raises TooFewUpdatesError if there are fewer good updates than the rules require.
        """
        early: dict[str, Update] = {}
        if not isinstance(self.sent, Sent):
            self.own = dict(zip(names, self.sent, strict=True))
        turns = deque(names)
        needed = self.rules.minimum or len(names)
        for attempt in range(self.rules.repeats + 1):
            self._assign([name for name in names if name not in self.traces], again=attempt > 0)
            for arrival in self._good():
                early[arrival.name] = arrival.update
                while turns and turns[0] in early:
                    yield early.pop(turns.popleft())
            if len(self.traces) >= needed:
                break
        yield from (early.pop(name) for name in names if name in early)
        for name in names:
            self.pending.pop(name, None)
        if (count := len(self.traces)) < needed:
            raise TooFewUpdatesError(
                f"{count} of {len(names)} clients answered well, and {needed} are needed{self._reasons()}"
            )

    def as_they_arrive(self, size: int, select: Callable[[set[str]], Sequence[str]]) -> Iterator[Update]:
        """Yield the first `size` updates. Idle clients are assigned at the start, and again if all assignments ended.

        `size`: of the buffer. `select`: the clients that are busy or have answered already -> the clients to assign.

        Raises TooFewUpdatesError if, as often as the rules allow, no assigned client answered well.
        """
        count = fruitless = 0
        while count < size:
            self._assign(select({*self.pending, *self.traces}), again=fruitless > 0)
            before = count
            for arrival in self._good():
                count += 1
                self._log(arrival.name, "arrived", f"trained the model of round {arrival.version}")
                yield replace(arrival.update, version=arrival.version)
                if count == size:
                    return
            fruitless += count == before
            if fruitless > self.rules.repeats:
                raise TooFewUpdatesError(f"{count} updates arrived, and the buffer needs {size}{self._reasons()}")

    def _assign(self, names: Sequence[str], *, again: bool) -> None:
        if again and self.clock:  # An engine without a clock pauses by itself.
            self.clock += self.rules.pause
        for name in names:
            if again:
                self._log(name, "repeated", "is assigned again")
            sent = self.sent if isinstance(self.sent, Sent) else self.own[name]
            self.pending[name] = Assignment(name, sent, self.round, self.clock)
            self.engine.submit(self.pending[name])

    def _good(self) -> Iterator[Arrival]:
        """The answers that count, until no assignment is outstanding."""
        for answer in self.engine.arrivals():
            self.clock = max(self.clock, answer.at)
            if isinstance(answer, Failure):
                if answer.final:
                    self.pending.pop(answer.name, None)
                self._log(answer.name, "missing" if answer.final else "refused", answer.what)
                continue
            assignment = self.pending.get(answer.name)
            why = refusal(answer, assignment, self.job, self.algorithm, self.rules.largest_change)
            if assignment is not None and answer.version == assignment.version:
                del self.pending[answer.name]
            if why is not None:
                self._log(answer.name, "refused", why)
                continue
            self.traces[answer.name] = answer.trace
            yield answer

    def _log(self, name: str, kind: EventKind, why: str) -> None:
        self.events.append(Event(self.round, name, kind, why, self.clock))

    def _reasons(self) -> str:
        """The last problem of each client without a good update, in parentheses."""
        problems = {one.client: one.why for one in self.events if one.kind in ("missing", "refused")}
        return f" ({'; '.join(f'{client}: {why}' for client, why in problems.items())})" if problems else ""
