"""Messages over Unix sockets: from the training to a node's worker and back, through relays that may die."""

import re
import socket
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from federations import INITIAL, same, server_of, three, train
from relays import Relay, served
from wires import ALGORITHMS, FACTS, JOB, nodes

from pipeline.engines.messages import Reply, Request
from pipeline.engines.remote import Remote, Undelivered, handshake
from pipeline.errors import QuorumError
from pipeline.federated.callbacks import Stopping
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.tolerance import STRICT
from pipeline.federation.flower.app import frames
from pipeline.federation.flower.app.frames import HANG_UPS, LENGTH, exchange, read_frame, write_frame
from pipeline.federation.sockets import SocketLink

NO_FRAMES = [(LENGTH.pack(10) + b"{", EOFError), (LENGTH.pack(1 << 30), ValueError)]


def connected(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.connect(str(path))
    return found


def linked(path: Path, relay: Callable[[socket.socket], object], most_relays: int = 20) -> SocketLink:
    """A link whose relays do something with their end of the socket, then die. It has sent one request, to A."""
    link = SocketLink(path, lambda: Thread(target=lambda: relay(connected(path)), daemon=True).start(), most_relays)
    link.send("A", "n", "{}", b"")
    return link


def test_flowers_app_imports_nothing_of_the_pipeline() -> None:
    """Flower's environment has neither the pipeline nor its packages."""
    files = Path(frames.__file__).parent.glob("*.py")
    assert [path.name for path in files if re.search(r"^\s*(from|import) pipeline", path.read_text(), re.M)] == []


@pytest.mark.parametrize(("sent", "error"), NO_FRAMES, ids=["half a frame", "a header of a gigabyte"])
def test_what_is_no_frame_is_refused(sent: bytes, error: type[Exception]) -> None:
    one, other = socket.socketpair()
    with other:
        with one:
            one.sendall(sent)
        with pytest.raises(error):
            read_frame(other)


@pytest.mark.parametrize("dies_after", [None, 3], ids=["one relay", "relays that die"])
def test_a_federation_over_sockets_is_its_simulation(make_client: Any, short: Path, dies_after: int | None) -> None:
    """Each relay dies before it delivers an answer; the next one gets all open requests, and nodes repeat answers."""
    algorithm, workers = ALGORITHMS["fedselectkd, own"], {name: short / f"{name}.sock" for name in "ABC"}
    for name, node in nodes(algorithm, three(make_client), short).items():
        served(node, workers[name])
    relay = Relay(short / "training.sock", workers, dies_after)
    link = SocketLink(short / "training.sock", relay.start)
    remote = Remote(link, handshake(link, "ABC", JOB, FACTS), STRICT, job=JOB)
    begun = initial_progress(algorithm, INITIAL, remote)
    progress = run_rounds(algorithm, remote, begun, Participation(), [Stopping(3, 99)], seed=5, job=JOB)
    finished = remote.finish(progress.server.adapter, 3)
    link.close()
    simulated = train(algorithm, three(make_client), 3, patience=99)
    assert same(progress.server.adapter, server_of(simulated))
    best = {name: one.loss for name, one in simulated.private.best["local"].items()}
    assert {name: reply.scores["loss"] for name, reply in finished.items()} == best
    assert (relay.started > 1) is (dies_after is not None)


def test_a_link_gives_up_on_relays_that_die_again_and_again(short: Path) -> None:
    link = linked(short / "t.sock", socket.socket.close, most_relays=3)
    with pytest.raises(QuorumError, match="Flower's relay dies again and again"):
        link.receive(5.0)


def test_a_link_waits_so_long_and_returns_what_flower_could_not_deliver(short: Path) -> None:
    waited = Event()

    def refuse(training: socket.socket) -> None:
        request, _ = read_frame(training)
        waited.wait(5)
        error = {"op": "error", "why": "has code 8 of Flower"}
        write_frame(training, error | {key: request[key] for key in ("name", "nonce")})

    link = linked(short / "t.sock", refuse)
    assert link.receive(0.05) is None
    waited.set()
    assert link.receive(5.0) == Undelivered("A", "n", "has code 8 of Flower")
    link.close()


class Echo:
    """A node that answers with the request's body."""

    def answer(self, request: Request, body: bytes) -> tuple[Reply, bytes]:
        return Reply(kind=request.kind, job=request.job, round=request.round, nonce=request.nonce), body


def test_a_worker_survives_invalid_requests(short: Path) -> None:
    served(Echo(), short / "w.sock")
    for garbage in (b"", b"\xff\xff\xff\xff", LENGTH.pack(2) + b"[]", LENGTH.pack(20) + b'{"sizes":[],"x": 1 }'):
        with connected(short / "w.sock") as relay:
            relay.sendall(garbage)
    request = Request(kind="train", job="j", round=1, nonce="n")
    answer, body = exchange(str(short / "w.sock"), {"header": request.model_dump_json()}, [b"abc"])
    assert Reply.model_validate_json(answer["header"]).nonce == "n"
    assert bytes(body[0]) == b"abc"


def test_sockets_are_for_their_owner_alone(short: Path) -> None:
    link = SocketLink(short / "t.sock", lambda: None)
    served(Echo(), short / "w.sock")
    assert {(short / name).stat().st_mode & 0o777 for name in ("t.sock", "w.sock")} == {0o600}
    link.close()


def hang_up(path: Path, later: float, times: int) -> None:
    """A worker that closes so many connections without an answer, then answers with the request."""
    time.sleep(later)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        for left in range(times, -1, -1):
            relay, _ = listener.accept()
            with relay:
                request, buffers = read_frame(relay)
                if not left:
                    write_frame(relay, request, buffers)


@pytest.mark.parametrize(("later", "times"), [(0.3, 0), (0.0, HANG_UPS), (0.0, HANG_UPS + 1)])
def test_a_relay_waits_for_a_worker_and_gives_up_one_that_hangs_up(short: Path, later: float, times: int) -> None:
    """A worker may start later; a frame is sent again to one that hung up, and is read as it was written."""
    frame = {"a": "ä", "b": [1]}, [b"", b"x" * 100_000, bytes(range(256))]
    Thread(target=hang_up, args=(short / "w.sock", later, times), daemon=True).start()
    with pytest.raises((EOFError, ConnectionError)) if times > HANG_UPS else nullcontext():
        assert exchange(str(short / "w.sock"), *frame, rest=0.02) == frame
