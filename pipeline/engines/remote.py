"""Clients on machines that are really apart: each round is messages to nodes, and what comes back of them.

The engine knows nothing of what carries a message; see `Link`. An answer counts if it repeats the nonce of a question
that is still open: what was answered before, or to someone else, is turned away.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pipeline.engines.messages import ERRORS, Facts, Kind, Reply, Request, answers, digest, parsed, strange
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent, Update
from pipeline.federated.engine import Arrival, Failure, Losses, Report
from pipeline.federated.tolerance import Tolerance
from pipeline.federated.wire import packed, unpacked
from pipeline.model.adapter import Adapter
from pipeline.workspace.progress import say

TURNED_AWAY = "is no answer to an open question"


class Delivered(NamedTuple):
    """A node's answer as it came."""

    name: str
    header: str
    body: bytes


class Undelivered(NamedTuple):
    """The carrier knows that a node will not answer this asking."""

    name: str
    nonce: str
    why: str


class Link(Protocol):
    """What carries messages to nodes and back."""

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        """Hand a message over; it waits where the node is not there yet."""

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        """The next answer; None after so many seconds without one."""

    def forget(self, nonce: str) -> None:
        """Nobody waits for this answer any more."""


@dataclass(frozen=True)
class Open:
    """A question without an answer."""

    name: str
    request: Request
    body: bytes
    until: float | None


class Outcome(NamedTuple):
    """What became of a question, or of a message that answers none: a good answer, or why there is none."""

    asked: Open | None
    answer: tuple[Reply, bytes] | Failure


class Remote:
    """See `Engine`.

    Args:
        facts: node -> what it said of itself.
    """

    def __init__(self, link: Link, facts: Mapping[str, Facts], rules: Tolerance, *, job: str) -> None:
        self._link, self._facts, self._rules, self._job = link, facts, rules, job
        self._open: dict[str, Open] = {}
        self._packed: tuple[Sent, bytes] | None = None
        self._told: dict[str, str] = {}
        self._held: deque[Outcome] = deque()
        self._failed: dict[tuple[str, Kind, int], float] = {}

    @property
    def trainers(self) -> Sequence[str]:
        return sorted(self._facts)

    @property
    def scored(self) -> Mapping[str, str]:
        return {name: name for name in self.trainers}

    def examples(self) -> int:
        """Of all clients, as they weigh in averages."""
        return sum(round(own.weight * own.train) for own in self._facts.values())

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        body = packed(adapter, {})
        self.ask_all([name], "join", version, body)
        self._told[name] = digest(body)

    def submit(self, name: str, sent: Sent, version: int, at: float = 0.0) -> None:
        if self._packed is None or self._packed[0] is not sent:
            self._packed = sent, packed(sent.adapter, sent.memory)
        self._ask(name, "train", version, self._packed[1])

    def arrivals(self) -> Iterator[Arrival | Failure]:
        while self._held or any(one.request.kind == "train" for one in self._open.values()):
            yield _arrival(self._held.popleft() if self._held else self._next())

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        assert server is not None, "a federation's server has a model"
        known = digest(packed(began, {}))
        alone = packed(server, {})
        # The first round's is everyone's first adapter. Who was not asked in the round before is told what came of it.
        behind = {name for name in names if self._told.get(name, known if version == 1 else "") != known}
        bodies = dict.fromkeys(names, alone) | (dict.fromkeys(behind, packed(server, began)) if behind else {})
        lenient = self._rules.minimum is not None or self._rules.without_quorum == "skip"
        replies = self.ask_all(names, "score", version, bodies, known, unknown, lenient=lenient)
        self._told.update(dict.fromkeys(replies, digest(alone)))
        return {name: Losses(reply.local, reply.server, reply.began) for name, reply in replies.items()}

    def finish(self, server: Adapter, version: int) -> dict[str, Reply]:
        """The training is over: nodes write their models down, and test them."""
        return self.ask_all(self.trainers, "finish", version, packed(server, {}))

    def _ask(self, name: str, kind: Kind, version: int, body: bytes, began: str = "", unknown: bool = False) -> None:
        if (failed := self._failed.pop((name, kind, version), None)) is not None:
            time.sleep(max(0.0, failed + self._rules.pause - time.monotonic()))
        nonce = secrets.token_hex(16)
        request = Request(kind=kind, job=self._job, round=version, nonce=nonce, began=began, unknown=unknown)
        deadline = None if kind == "finish" else self._rules.deadline  # which takes a test set's time, not a round's
        until = None if deadline is None else time.monotonic() + deadline
        self._open[nonce] = Open(name, request, body, until)
        self._link.send(name, nonce, request.model_dump_json(), body)

    def ask_all(
        self,
        names: Sequence[str],
        kind: Kind,
        version: int,
        body: bytes | Mapping[str, bytes],
        began: str = "",
        unknown: Collection[str] = (),
        *,
        lenient: bool = False,
    ) -> dict[str, Reply]:
        """Everyone's answer; who fails is asked again, as often as the rules allow.

        Args:
            body: what all are sent, or each.
            lenient: who never answers well is left out.

        Raises:
            QuorumError: one never answers well, and may not be left out.
        """
        bodies = dict.fromkeys(names, body) if isinstance(body, bytes) else body
        found: dict[str, Reply] = {}
        tries = dict.fromkeys(names, 0)
        for name in names:
            self._ask(name, kind, version, bodies[name], began, name in unknown)
        while len(found) < len(tries):
            coming = self._next()
            asked, answer = coming
            if asked is None or asked.request.kind != kind:
                self._held.append(coming)  # of a buffered training, whose clients answer at any time
            elif not isinstance(answer, Failure):
                found[asked.name] = answer[0]
            elif tries[asked.name] < self._rules.repeats:
                tries[asked.name] += 1
                self._ask(asked.name, kind, version, bodies[asked.name], began, asked.name in unknown)
            elif lenient:
                del tries[asked.name]
                say(f"federation: round {version}, {kind}: {asked.name} {answer.what}, and is left out")
            else:
                raise QuorumError(f"round {version}, {kind}: {asked.name} {_with_remedy(answer.what)}")
        return {name: found[name] for name in names if name in found}

    def _next(self) -> Outcome:
        """What becomes of the next question to be answered or given up, or of a message that answers none."""
        outcome = self._awaited()
        if outcome.asked is not None and isinstance(outcome.answer, Failure):
            asked = outcome.asked
            self._failed[asked.name, asked.request.kind, asked.request.round] = time.monotonic()
        return outcome

    def _awaited(self) -> Outcome:
        while True:
            waits = [one.until for one in self._open.values() if one.until is not None]
            coming = self._link.receive(max(0.0, min(waits) - time.monotonic()) if waits else None)
            if coming is None:
                if late := self._late():
                    return late
            elif isinstance(coming, Delivered):
                return self._delivered(coming)
            elif (asked := self._open.pop(coming.nonce, None)) is not None:
                return Outcome(asked, Failure(asked.name, asked.request.round, coming.why))

    def _delivered(self, coming: Delivered) -> Outcome:
        try:
            reply = parsed(Reply, coming.header)
        except QuorumError as error:
            return Outcome(None, Failure(coming.name, 0, str(error), final=False))
        asked = self._open.get(reply.nonce)
        if asked is None or asked.name != coming.name or not answers(reply, asked.request):
            return Outcome(None, Failure(coming.name, reply.round, TURNED_AWAY, final=False))
        del self._open[reply.nonce]
        if reply.error is not None:
            return Outcome(asked, Failure(asked.name, asked.request.round, ERRORS[reply.error]))
        if told := strange(reply, self._facts.get(asked.name)):
            return Outcome(asked, Failure(asked.name, asked.request.round, told))
        return Outcome(asked, (reply, coming.body))

    def _late(self) -> Outcome | None:
        now = time.monotonic()
        for nonce, one in list(self._open.items()):
            if one.until is not None and one.until <= now:
                del self._open[nonce]
                self._link.forget(nonce)
                late = f"did not answer within {self._rules.deadline:g} s"
                return Outcome(one, Failure(one.name, one.request.round, late))
        return None


def _with_remedy(what: str) -> str:
    """What went wrong at a node, and what to do: an error's code has its own remedy."""
    remedy = "look at its node, then run again, which goes on at the last finished round"
    return what if ";" in what else f"{what}; {remedy}"


def _arrival(outcome: Outcome) -> Arrival | Failure:
    asked, answer = outcome
    if isinstance(answer, Failure):
        return answer
    reply, body = answer
    assert asked is not None, "an answer is to a question"
    try:
        adapter, memory = unpacked(body)
    except ValueError as error:
        return Failure(asked.name, asked.request.round, str(error))
    report = Report(reply.loss, reply.steps, reply.seconds, reply.figures, len(asked.body), len(body))
    return Arrival(asked.name, Update(adapter, reply.examples, reply.steps, memory), reply.round, report, job=reply.job)


def handshake(link: Link, names: Sequence[str], job: str, own: Facts) -> dict[str, Facts]:
    """Every node's facts, once all are there.

    Raises:
        QuorumError: one differs from the server's in what results depend on; it is named, with both values.
    """
    remote = Remote(link, {}, Tolerance(), job=job)
    found: dict[str, Facts] = {}
    for name, reply in remote.ask_all(names, "hello", 0, b"").items():
        if reply.facts is None:
            raise QuorumError(f"{name}: said nothing of itself; both ends need one version")
        found[name] = reply.facts
        for fact in ("code", "order", "backbone", "packages", "precision", "threads"):
            ours, theirs = getattr(own, fact), getattr(reply.facts, fact)
            if ours != theirs:
                raise QuorumError(
                    f"{name}: {fact}: {_apart(theirs, ours)}; bring both to one, then start its node again"
                )
    return found


def _apart(theirs: object, ours: object) -> str:
    """Two values beside each other; of two tables, the first row that differs."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        name = next(name for name in sorted({*theirs, *ours}) if theirs.get(name) != ours.get(name))
        return f"{name} {theirs.get(name, 'missing')} there, {ours.get(name, 'missing')} here"
    return f"{theirs} there, {ours} here"
