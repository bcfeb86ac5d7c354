"""A federation whose nodes answer in this process, over a link that can lose, repeat, swap and forge replies."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from federations import INITIAL, build, same, select

from pipeline.engines.messages import Facts, Reply, Request
from pipeline.engines.node import Node
from pipeline.engines.remote import Delivered, Remote, Undelivered, handshake
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.callbacks import Stopping
from pipeline.federated.history import Round
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance
from pipeline.model.adapter import Adapter

JOB = "job"
FACTS = Facts(
    code="c", order="o", backbone="b", packages={"torch": "1"}, precision="fp32", threads=1, weight=1.0, train=4, val=2,
    test=1,
)  # fmt: skip

ALGORITHMS: dict[str, Algorithm] = {
    "fedavg": build("AdaFedAvg"),
    "fedprox": build("AdaFedProx", mu=0.1),
    "scaffold": build("SCAFFOLD"),
    "ditto": build("Ditto", mu=0.1),
    "fedkd": build("AdaFedKD", weight=0.2, local_start="server"),
    "fedselectkd, own": select(4.92, local_start="own"),
    "fedselectkd, server": select(4.92, local_start="server"),
    "fedselectkd, a quantile": select("q0.5", local_start="server"),
}

Disturbance = Callable[[Delivered], list[Delivered | Undelivered]]
"""A reply -> what arrives."""


class Wire:
    """A `Link` to nodes of this process; `disturbances` apply to the next replies, one each."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes, self.disturbances = dict(nodes), deque[Disturbance]()
        self.seen: list[tuple[str, str, bytes]] = []
        self._arrived: deque[Delivered | Undelivered] = deque()

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        self.seen.append(("down", header, body))
        reply, content = self.nodes[name].answer(Request.model_validate_json(header), body)
        self.seen.append(("up", reply.model_dump_json(), content))
        answer = Delivered(name, reply.model_dump_json(), content)
        self._arrived.extend(self.disturbances.popleft()(answer) if self.disturbances else [answer])

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        if not self._arrived:
            assert seconds is not None, "would wait forever"
            return None
        return self._arrived.popleft()

    def forget(self, nonce: str) -> None:
        pass


def nodes(algorithm: Algorithm, clients: Mapping[str, Any], folder: Path) -> dict[str, Node]:
    def finish(round_: int, server: Adapter, private: Any) -> Mapping[str, float]:
        return {"loss": private.best["server" if algorithm.evaluates == "server" else "local"].popitem()[1].loss}

    def node(name: str, data: Any) -> Node:
        facts = FACTS.model_copy(update={"train": data.examples})
        return Node(name, JOB, algorithm, data, INITIAL, folder / name, seed=5, finish=finish, facts=facts)

    return {name: node(name, data) for name, data in clients.items()}


def trained(
    algorithm: Algorithm, wire: Wire, rounds: int = 3, *, selected: int | None = None, rules: Tolerance = STRICT,
    joins: Mapping[str, int] | None = None, done: Progress | None = None,
    each: Callable[[Progress], None] = lambda progress: None,
) -> Progress:  # fmt: skip
    remote = Remote(wire, handshake(wire, sorted(wire.nodes), JOB, FACTS), rules, job=JOB)

    class Each(Stopping):
        def after_round(self, progress: Progress) -> None:
            each(progress)

    begun = done or initial_progress(algorithm, INITIAL, remote)
    who = Participation(selected, joins or {})
    return run_rounds(algorithm, remote, begun, who, [Each(rounds, 99, joins or {})], seed=5, rules=rules, job=JOB)


def wire(
    algorithm: Algorithm, clients: Mapping[str, Any], folder: Path, *disturbances: Disturbance, after: int = 3
) -> Wire:
    """A wire to new nodes, with disturbances of their replies after the first ones, which are three handshakes."""
    made = Wire(nodes(algorithm, clients, folder))
    made.disturbances.extend([unchanged] * after + list(disturbances))
    return made


def timeless(history: tuple[Round, ...]) -> list[Round]:
    return [replace(row, seconds=0.0) for row in history]


def equal(one: Progress, other: Progress) -> bool:
    """Whether the bits of two trainings are the same."""
    servers = (one.server.adapter, other.server.adapter), (one.server.memory, other.server.memory)
    return all(same(*pair) for pair in servers) and timeless(one.history) == timeless(other.history)


def unchanged(answer: Delivered) -> list[Delivered | Undelivered]:
    return [answer]


def silent(answer: Delivered) -> list[Delivered | Undelivered]:
    return []


def lost(answer: Delivered) -> list[Delivered | Undelivered]:
    return [Undelivered(answer.name, Reply.model_validate_json(answer.header).nonce, "was lost on the way")]
