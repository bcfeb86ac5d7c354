"""Clients on separate machines: a round is a number of messages to nodes, and their replies.

The engine does not know how messages are carried; see `Link`. A reply counts if it repeats the nonce of an open request
of its node. All other messages are refused.
"""

import secrets
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pipeline.engines.messages import ERRORS, Facts, Reply, Request, RequestKind, digest, implausible, parsed
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Sent, Trace, Update
from pipeline.federated.engine import Arrival, Assignment, Failure, Losses
from pipeline.federated.local import represented
from pipeline.federated.tolerance import Tolerance
from pipeline.federated.wire import deserialize, serialize
from pipeline.model.adapter import Adapter
from pipeline.workspace.progress import say

UNREQUESTED = "is no answer to an open request"
COMPARED = ("code", "order", "backbone", "packages", "precision", "threads")
"""The facts that results depend on, which must be equal on both sides."""


class Delivered(NamedTuple):
    """A node's reply as it arrived."""

    name: str
    header: str
    body: bytes


class Undelivered(NamedTuple):
    """The carrier reports that a node will not answer this request."""

    name: str
    nonce: str
    why: str


class Link(Protocol):
    """Carries messages to nodes and back."""

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        """Send a message; if the node is not connected yet, wait for it."""

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        """The next reply; None after this many seconds without one."""

    def forget(self, nonce: str) -> None:
        """Drop a request: its reply is no longer needed."""


@dataclass(frozen=True)
class OpenRequest:
    """A request without a reply; `until` is its deadline on the monotonic clock, in seconds."""

    name: str
    request: Request
    body: bytes
    until: float | None


class Received(NamedTuple):
    """A request and its good reply, or the reason why it has none. The request is None for an unrequested message."""

    to: OpenRequest | None
    answer: tuple[Reply, bytes] | Failure


class Remote:
    """An `Engine` whose clients are nodes on other machines; `facts` are theirs, by name."""

    def __init__(self, link: Link, facts: Mapping[str, Facts], rules: Tolerance, *, job: str) -> None:
        self._link, self._rules, self._job = link, rules, job
        self.trainers: Mapping[str, int] = {
            name: represented(own.train, own.weight) for name, own in sorted(facts.items())
        }
        self.scored: Mapping[str, str] = {name: name for name in self.trainers}
        self._open: dict[str, OpenRequest] = {}
        self._serialized: tuple[Sent, bytes] | None = None
        self._scored_digest: dict[str, str] = {}
        self._postponed = deque[Received]()
        self._failed_at: dict[tuple[str, RequestKind, int], float] = {}

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        body = serialize(Sent(adapter))
        self.request_all([name], "join", version, body)
        self._scored_digest[name] = digest(body)

    def submit(self, assignment: Assignment) -> None:
        sent = assignment.sent
        if self._serialized is None or self._serialized[0] is not sent:
            self._serialized = sent, serialize(sent)
        self._request(assignment.name, "train", assignment.version, self._serialized[1])

    def arrivals(self) -> Iterator[Arrival | Failure]:
        while self._postponed or any(one.request.kind == "train" for one in self._open.values()):
            yield _arrival(self._postponed.popleft() if self._postponed else self._next())

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        assert server is not None, "a federation's server has a model"
        before, alone = digest(serialize(Sent(began))), serialize(Sent(server))
        # A node knows `began` if it scored the round before; before the first round it is the initial adapter. The
        # other nodes are sent `began`, too.
        initial = before if version == 1 else ""
        behind = [name for name in names if self._scored_digest.get(name, initial) != before]
        bodies = dict.fromkeys(names, alone)
        if behind:
            bodies |= dict.fromkeys(behind, serialize(Sent(server, began)))
        lenient = self._rules.minimum is not None or self._rules.without_quorum == "skip"
        replies = self.request_all(names, "score", version, bodies, before, unknown, lenient=lenient)
        self._scored_digest.update(dict.fromkeys(replies, digest(alone)))
        return {name: Losses(reply.local, reply.server, reply.began) for name, reply in replies.items()}

    def finish(self, server: Adapter, version: int) -> dict[str, Reply]:
        """End the training: nodes save their models and test them."""
        return self.request_all(list(self.trainers), "finish", version, serialize(Sent(server)))

    def request_all(
        self,
        names: Sequence[str],
        kind: RequestKind,
        version: int,
        body: bytes | Mapping[str, bytes],
        began: str = "",
        unknown: Collection[str] = (),
        *,
        lenient: bool = False,
    ) -> dict[str, Reply]:
        """Send a request to each of these nodes, and repeat it to those that fail, as often as the rules allow.

        Args:
            body: the body for all nodes, or one per node.
            unknown: the nodes that also score the model that the round began with.
            lenient: leave out nodes that fail each time.

        Raises QuorumError if a node failed each time, and `lenient` is False.
        """
        bodies = dict.fromkeys(names, body) if isinstance(body, bytes) else body

        def send(name: str) -> None:
            self._request(name, kind, version, bodies[name], began, name in unknown)

        replies: dict[str, Reply] = {}
        repeats = dict.fromkeys(names, self._rules.repeats)
        for name in names:
            send(name)
        while len(replies) < len(repeats):
            outcome = self._next()
            to, answer = outcome
            if to is None or to.request.kind != kind:
                self._postponed.append(outcome)  # With a buffer, clients answer at any time.
            elif not isinstance(answer, Failure):
                replies[to.name] = answer[0]
            elif repeats[to.name] > 0:
                repeats[to.name] -= 1
                send(to.name)
            elif lenient:
                del repeats[to.name]
                say(f"federation: round {version}, {kind}: {to.name} {answer.what}, and is left out")
            else:
                # An error's code has its own remedy.
                remedy = "; look at its node, then run again, which resumes after the last round"
                why = answer.what if ";" in answer.what else answer.what + remedy
                raise QuorumError(f"round {version}, {kind}: {to.name} {why}")
        return {name: replies[name] for name in names if name in replies}

    def _request(
        self, name: str, kind: RequestKind, version: int, body: bytes, began: str = "", unknown: bool = False
    ) -> None:
        if (failed := self._failed_at.pop((name, kind, version), None)) is not None:
            time.sleep(max(0.0, failed + self._rules.pause - time.monotonic()))
        nonce = secrets.token_hex(16)
        request = Request(kind=kind, job=self._job, round=version, nonce=nonce, began=began, unknown=unknown)
        # The deadline is for a round; a test of all test examples takes longer.
        deadline = None if kind == "finish" else self._rules.deadline
        until = None if deadline is None else time.monotonic() + deadline
        self._open[nonce] = OpenRequest(name, request, body, until)
        self._link.send(name, nonce, request.model_dump_json(), body)

    def _next(self) -> Received:
        """The next outcome of a request, or an unrequested message."""
        while True:
            deadlines = {nonce: one.until for nonce, one in self._open.items() if one.until is not None}
            first = min(deadlines, key=lambda nonce: deadlines[nonce], default="")
            message = self._link.receive(max(0.0, deadlines[first] - time.monotonic()) if first else None)
            if isinstance(message, Delivered):
                return self._outcome(message)
            if message is not None and message.nonce in self._open:
                return self._failed(message.nonce, message.why)
            if message is None and deadlines[first] <= time.monotonic():
                self._link.forget(first)
                return self._failed(first, f"did not answer within {self._rules.deadline:g} s")

    def _outcome(self, message: Delivered) -> Received:
        try:
            reply = parsed(Reply, message.header)
        except QuorumError as error:
            return Received(None, Failure(message.name, 0, str(error), final=False))
        to = self._open.get(reply.nonce)
        wanted = to and (to.name, to.request.kind, to.request.job, to.request.round)
        if to is None or wanted != (message.name, reply.kind, reply.job, reply.round):
            return Received(None, Failure(message.name, reply.round, UNREQUESTED, final=False))
        why = ERRORS[reply.error] if reply.error is not None else implausible(reply, self.trainers.get(to.name, 0))
        if why is not None:
            return self._failed(reply.nonce, why)
        del self._open[reply.nonce]
        return Received(to, (reply, message.body))

    def _failed(self, nonce: str, why: str) -> Received:
        """Close a request without a good reply, and note when, for the pause before it is repeated."""
        to = self._open.pop(nonce)
        self._failed_at[to.name, to.request.kind, to.request.round] = time.monotonic()
        return Received(to, Failure(to.name, to.request.round, why))


def _arrival(outcome: Received) -> Arrival | Failure:
    """The outcome of a `train` request, as an engine reports it."""
    to, answer = outcome
    if isinstance(answer, Failure):
        return answer
    reply, body = answer
    assert to is not None, "a reply has a request"
    try:
        arrived = deserialize(body)
    except ValueError as error:
        return Failure(to.name, to.request.round, str(error))
    trace = Trace(reply.loss, reply.steps, reply.seconds, reply.figures, {}, len(to.body), len(body))
    update = Update(arrived.adapter, reply.examples, reply.steps, arrived.memory)
    return Arrival(to.name, update, reply.round, trace, job=reply.job)


def handshake(link: Link, names: Sequence[str], job: str, own: Facts) -> dict[str, Facts]:
    """The facts of these nodes, all of which must answer, compared with `own`, the server's.

    Raises QuorumError if a fact that results depend on differs; the message has its name and both values.
    """
    facts: dict[str, Facts] = {}
    for name, reply in Remote(link, {}, Tolerance(), job=job).request_all(names, "hello", 0, b"").items():
        if reply.facts is None:
            raise QuorumError(f"{name}: sent no facts; both ends need one version")
        facts[name] = reply.facts
        theirs, ours = _compared(reply.facts), _compared(own)
        if differing := [fact for fact in theirs | ours if theirs.get(fact) != ours.get(fact)]:
            fact = differing[0]
            both = f"{theirs.get(fact, 'missing')} there, {ours.get(fact, 'missing')} here"
            raise QuorumError(f"{name}: {fact} {both}; use the same on both ends, then restart its node")
    return facts


def _compared(facts: Facts) -> dict[str, object]:
    """The facts in `COMPARED` as they are named in an error, each package by itself."""
    values = {f"{fact}:": getattr(facts, fact) for fact in COMPARED if fact != "packages"}
    return values | {f"packages: {name}": version for name, version in facts.packages.items()}
