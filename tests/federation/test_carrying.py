"""Messages over Unix sockets, from the training to a node's worker and back, with a relay between that may die."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from federations import INITIAL, same, select, server_of, three, train
from relays import Relay

from pipeline.engines.messages import Facts, Reply, Request
from pipeline.engines.node import Node
from pipeline.engines.remote import Delivered, Remote, Undelivered, handshake
from pipeline.errors import QuorumError
from pipeline.federated.callbacks.stopping import Stopping
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.tolerance import STRICT
from pipeline.federation.flower.app.frames import LENGTH, exchange, read_frame, write_frame
from pipeline.federation.link import SocketLink
from pipeline.federation.worker import serve

FACTS = Facts(
    code="c", order="o", backbone="b", packages={}, precision="fp32", threads=1, weight=1.0, train=4, val=2, test=1
)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with TemporaryDirectory(prefix="q") as folder:
        yield Path(folder)


def test_a_frame_comes_out_as_it_went_in() -> None:
    one, other = socket.socketpair()
    with one, other:
        write_frame(one, {"a": "ä", "b": [1]}, [b"", b"x" * 100_000, bytes(range(256))])
        header, buffers = read_frame(other)
    assert header == {"a": "ä", "b": [1]}
    assert [bytes(buffer) for buffer in buffers] == [b"", b"x" * 100_000, bytes(range(256))]


def test_half_a_frame_is_its_end_and_a_giant_header_is_none() -> None:
    one, other = socket.socketpair()
    with other:
        with one:
            one.sendall(LENGTH.pack(10) + b"{")
        with pytest.raises(EOFError):
            read_frame(other)
    one, other = socket.socketpair()
    with one, other:
        one.sendall(LENGTH.pack(1 << 30))
        with pytest.raises(ValueError, match="a header of 1073741824 bytes"):
            read_frame(other)


@pytest.mark.parametrize("dies_after", [None, 3], ids=["one relay", "relays that die"])
def test_a_federation_over_sockets_is_its_simulation(make_client: Any, short: Path, dies_after: int | None) -> None:
    """Each relay dies with an answer in its hands; the next is told all open questions, and nodes repeat themselves."""
    algorithm = select(4.92, local_start="own")
    clients = three(make_client)
    workers = {}
    for name, data in clients.items():
        facts = FACTS.model_copy(update={"train": data.examples})
        node = Node(
            name, "job", algorithm, data, INITIAL, short / name, seed=5, facts=facts, finish=lambda *_: {"loss": 1.0}
        )
        workers[name], ready = short / f"{name}.sock", threading.Event()
        threading.Thread(target=serve, args=(node, workers[name], ready), daemon=True).start()
        assert ready.wait(10)
    relay = Relay(short / "training.sock", workers, dies_after)
    link = SocketLink(short / "training.sock", relay.start)
    facts = handshake(link, "ABC", "job", FACTS)
    remote = Remote(link, facts, STRICT, job="job")
    begun = initial_progress(algorithm, INITIAL, remote.examples())
    progress = run_rounds(algorithm, remote, begun, Participation(), [Stopping(3, 99)], seed=5, job="job")
    told = remote.finish(progress.server.adapter, 3)
    link.close()
    simulated = train(algorithm, three(make_client), 3, patience=99)
    assert same(progress.server.adapter, server_of(simulated))
    assert {name: reply.scores for name, reply in told.items()} == {name: {"loss": 1.0} for name in "ABC"}
    assert (relay.started > 1) is (dies_after is not None)


def test_relays_that_die_again_and_again_are_given_up(short: Path) -> None:
    def start_relay() -> None:
        def connect_and_die() -> None:
            with socket.socket(socket.AF_UNIX) as training:
                training.connect(str(short / "t.sock"))

        threading.Thread(target=connect_and_die, daemon=True).start()

    link = SocketLink(short / "t.sock", start_relay, most_relays=3)
    link.send("A", "n", "{}", b"")
    with pytest.raises(QuorumError, match="Flower's relay dies again and again"):
        link.receive(5.0)


def test_nothing_within_the_time_is_nothing(short: Path) -> None:
    def start_relay() -> None:
        def stay() -> None:
            training = socket.socket(socket.AF_UNIX)
            training.connect(str(short / "t.sock"))
            with suppress(EOFError, OSError):
                while True:
                    read_frame(training)

        threading.Thread(target=stay, daemon=True).start()

    link = SocketLink(short / "t.sock", start_relay)
    link.send("A", "n", "{}", b"")
    assert link.receive(0.05) is None
    link.close()


def test_what_flower_cannot_deliver_is_told(short: Path) -> None:
    def start_relay() -> None:
        def refuse() -> None:
            training = socket.socket(socket.AF_UNIX)
            training.connect(str(short / "t.sock"))
            told, _ = read_frame(training)
            back = {"op": "error", "name": told["name"], "nonce": told["nonce"], "why": "has code 8 of Flower"}
            write_frame(training, back)

        threading.Thread(target=refuse, daemon=True).start()

    link = SocketLink(short / "t.sock", start_relay)
    link.send("A", "n", "{}", b"")
    assert link.receive(5.0) == Undelivered("A", "n", "has code 8 of Flower")
    link.close()


def test_a_worker_survives_what_is_no_request(short: Path) -> None:
    class Echo:
        def answer(self, request: Request, body: bytes) -> tuple[Reply, bytes]:
            return Reply(kind=request.kind, job=request.job, round=request.round, nonce=request.nonce), body

    ready = threading.Event()
    threading.Thread(target=serve, args=(Echo(), short / "w.sock", ready), daemon=True).start()
    ready.wait(10)
    for garbage in (b"", b"\xff\xff\xff\xff", LENGTH.pack(2) + b"[]", LENGTH.pack(20) + b'{"sizes":[],"x": 1 }'):
        with socket.socket(socket.AF_UNIX) as relay:
            relay.connect(str(short / "w.sock"))
            relay.sendall(garbage)
    with socket.socket(socket.AF_UNIX) as relay:
        relay.connect(str(short / "w.sock"))
        request = Request(kind="train", job="j", round=1, nonce="n")
        write_frame(relay, {"header": request.model_dump_json()}, [b"abc"])
        told, body = read_frame(relay)
    assert Reply.model_validate_json(told["header"]).nonce == "n"
    assert bytes(body[0]) == b"abc"


def test_sockets_are_for_their_owner_alone(short: Path) -> None:
    link = SocketLink(short / "t.sock", lambda: None)
    assert (short / "t.sock").stat().st_mode & 0o777 == 0o600
    link.close()
    assert Delivered("A", "h", b"").name == "A"


def worker_that_hangs_up(path: Path, times: int) -> None:
    """So often; then it answers with what it was asked."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        for left in range(times, -1, -1):
            relay, _ = listening.accept()
            with relay:
                told, buffers = read_frame(relay)
                if not left:
                    write_frame(relay, told, buffers)


def test_a_worker_that_comes_later_is_waited_for(short: Path) -> None:
    coming = threading.Timer(0.3, worker_that_hangs_up, (short / "w.sock", 0))
    coming.start()
    assert exchange(str(short / "w.sock"), {"a": 1}, [b"x"], rest=0.02) == ({"a": 1}, [b"x"])
    coming.join()


def test_a_worker_that_dies_at_work_is_asked_again(short: Path) -> None:
    threading.Thread(target=worker_that_hangs_up, args=(short / "w.sock", 3), daemon=True).start()
    assert exchange(str(short / "w.sock"), {"a": 1}, [b"x"], rest=0.02) == ({"a": 1}, [b"x"])


def test_a_worker_that_always_hangs_up_is_given_up(short: Path) -> None:
    threading.Thread(target=worker_that_hangs_up, args=(short / "w.sock", 4), daemon=True).start()
    with pytest.raises((EOFError, ConnectionError)):
        exchange(str(short / "w.sock"), {"a": 1}, [b"x"], rest=0.02)
