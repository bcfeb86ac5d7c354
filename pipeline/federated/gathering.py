"""The answers to a round, as they come: which count, who is asked again, and whether there are enough.

A synchronous round takes its answers in the order of names, whoever answers first, so that sums are the same bits. A
buffered one takes them as they come, from whichever round they were asked in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent, Travels, Update
from pipeline.federated.engine import Arrival, Asked, Engine, Failure, Report
from pipeline.federated.events import Event, Kind
from pipeline.federated.inspection import refusal
from pipeline.federated.tolerance import Tolerance


class TooFewError(Exception):
    """A round has fewer good answers than it needs; the message says why."""


@dataclass
class Gathering:
    """One round's answers.

    Args:
        sent: what this round's clients are sent.
        asked: clients whose answers are still to come, of this round and, where answers are buffered, of earlier ones.
        clock: seconds since the training began.
    """

    engine: Engine
    round: int
    sent: Sent
    travels: Travels
    rules: Tolerance
    job: str
    asked: dict[str, Asked]
    clock: float
    reports: dict[str, Report] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def in_order(self, names: Sequence[str]) -> Iterator[Update]:
        """All of these are asked; their updates in this order. One that comes before its turn is held until then.

        Raises:
            TooFewError: fewer answer than the rules ask for.
        """
        early: dict[str, Update] = {}
        turns = iter(names)
        turn = next(turns, None)
        count, needed = 0, self.rules.minimum or len(names)
        for attempt in range(self.rules.repeats + 1):
            self._ask([name for name in names if name not in self.reports], again=attempt > 0)
            for arrival in self._good():
                early[arrival.name] = arrival.update
                count += 1
                while turn in early:
                    yield early.pop(turn)
                    turn = next(turns, None)
            if count >= needed:
                break
        yield from (early.pop(name) for name in names if name in early)
        for name in names:  # nobody waits for them any more
            self.asked.pop(name, None)
        if count < needed:
            raise TooFewError(
                f"{count} of {len(names)} clients answered well, and {needed} are needed{self._because()}"
            )

    def as_they_come(self, size: int, draw: Callable[[set[str]], Sequence[str]]) -> Iterator[Update]:
        """So many updates; who is idle is asked when the round begins, and again where nobody is left to answer.

        Args:
            draw: the clients that are busy or have answered already -> those that are to be asked.

        Raises:
            TooFewError: as many times as the rules allow, nobody that was asked answered well.
        """
        count = fruitless = 0
        while count < size:
            self._ask(draw({*self.asked, *self.reports}), again=fruitless > 0)
            before = count
            for arrival in self._good():
                count += 1
                self._note(arrival.name, "arrived", f"asked in round {arrival.version}")
                yield replace(arrival.update, version=arrival.version)
                if count == size:
                    return
            fruitless += count == before
            if fruitless > self.rules.repeats:
                raise TooFewError(f"{count} updates came, and the buffer holds {size}{self._because()}")

    def _ask(self, names: Sequence[str], *, again: bool) -> None:
        if again and self.clock:  # an engine without one waits by itself
            self.clock += self.rules.pause
        for name in names:
            if again:
                self._note(name, "repeated", "is asked again")
            self.asked[name] = Asked(name, self.sent, self.round, self.clock)
        for name in names:
            self.engine.submit(name, self.sent, self.round, self.asked[name].at)

    def _good(self) -> Iterator[Arrival]:
        """The answers that count, until nobody is left to answer."""
        for coming in self.engine.arrivals():
            self.clock = max(self.clock, coming.at)
            if isinstance(coming, Failure):
                if coming.final:
                    self.asked.pop(coming.name, None)
                self._note(coming.name, "missing" if coming.final else "refused", coming.what)
                continue
            asked = self.asked.get(coming.name)
            why = refusal(coming, asked, self.job, self.travels, self.rules.largest_change)
            if asked is not None and coming.version == asked.version:
                del self.asked[coming.name]
            if why is not None:
                self._note(coming.name, "refused", why)
                continue
            self.reports[coming.name] = coming.report
            yield coming

    def _note(self, name: str, kind: Kind, why: str) -> None:
        self.events.append(Event(self.round, name, kind, why, self.clock))

    def _because(self) -> str:
        """What was last found of each client without a good answer."""
        told = {one.client: one.why for one in self.events if one.kind in ("missing", "refused")}
        return f" ({'; '.join(f'{client}: {why}' for client, why in told.items())})" if told else ""


def stopped(round_: int, short: TooFewError) -> QuorumError:
    """What a training ends with whose rules allow no round without a quorum."""
    return QuorumError(
        f"round {round_}: {short}; run again, or let tolerance in params.yaml repeat or skip such rounds"
    )
