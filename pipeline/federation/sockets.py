"""Both ends of the transport on Unix sockets: the training's link to a relay, and a node's worker.

A relay is one of Flower's processes and may die. The link then starts another and sends it every open request. Nodes
answer a repeated request with the same bytes, so nothing is computed twice. A worker is the one long-lived process of
an organisation that has the backbone, the prefixes and the data; Flower starts a relay for each message to it.
"""

import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipeline.engines.messages import Request, parsed
from pipeline.engines.node import Node
from pipeline.engines.remote import Delivered, Undelivered
from pipeline.errors import QuorumError
from pipeline.federation.flower.app.frames import read_frame, write_frame
from pipeline.federation.site import STATE
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

CONNECT_SECONDS = 120.0


def listen(path: Path) -> socket.socket:
    """A new Unix socket that listens, for this account alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(16)
    return listener


def serve(node: Node, path: Path, ready: threading.Event) -> None:
    """Answer requests at a Unix socket until the process ends; `ready` is set once it listens.

    The node works on one request at a time; others wait.
    """
    with listen(path) as listener:
        ready.set()
        while True:
            relay, _ = listener.accept()
            threading.Thread(target=_answer, args=(node, relay), daemon=True).start()


def _answer(node: Node, relay: socket.socket) -> None:
    """Answer one request. The node stores its answer, so a relay that goes away loses nothing."""
    with relay:
        try:
            message, buffers = read_frame(relay)
            reply, body = node.answer(parsed(Request, message["header"]), b"".join(buffers))
            write_frame(relay, {"header": reply.model_dump_json()}, [body])
        except (EOFError, OSError) as error:
            say(f"node: a relay went away ({error!r})")
        except (ValueError, KeyError, QuorumError) as error:
            say(f"node: received no valid request ({error})")


class SocketLink:
    """A `Link` over a Unix socket.

    Args:
        path: the socket's path.
        start_relay: starts a relay, which connects to the socket.
        most_relays: how many relays to start without an answer between them before giving up.
    """

    def __init__(self, path: Path, start_relay: Callable[[], None], most_relays: int = 20) -> None:
        self._start_relay, self._most, self._left = start_relay, most_relays, most_relays
        self._listener = listen(path)
        self._listener.settimeout(CONNECT_SECONDS)
        self._open: dict[str, tuple[Json, bytes]] = {}
        self._answers: queue.SimpleQueue[Delivered | Undelivered | None] = queue.SimpleQueue()
        self._relay: socket.socket | None = None

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        """Send a request to a node; see `Link.send`."""
        message = {"op": "send", "name": name, "nonce": nonce, "header": header}
        self._open[nonce] = message, body
        if self._relay is None:
            self._connect()
        else:
            self._write(message, body)

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        """The next answer, or None after so many seconds; see `Link.receive`."""
        while True:
            if self._relay is None:
                self._connect()
            try:
                answer = self._answers.get(timeout=seconds)
            except queue.Empty:
                return None
            if answer is not None:
                self._left = self._most
                return answer
            self._relay = None

    def forget(self, nonce: str) -> None:
        """Stop waiting for an answer; see `Link.forget`."""
        self._open.pop(nonce, None)
        self._write({"op": "forget", "nonce": nonce}, b"")

    def close(self) -> None:
        """Close both sockets, which ends the relay."""
        if self._relay is not None:
            self._relay.close()
        self._listener.close()

    def _connect(self) -> None:
        """Start a relay and send it every open request. Raises QuorumError if none connects, or too many have died."""
        if not self._left:
            raise QuorumError(f"federation: Flower's relay dies again and again; read {STATE}/superexec.log, run again")
        self._left -= 1
        self._start_relay()
        try:
            self._relay, _ = self._listener.accept()
        except TimeoutError:
            late = f"no relay within {CONNECT_SECONDS:g} s"
            raise QuorumError(f"federation: {late}; read {STATE}/superlink.log, then run again") from None
        threading.Thread(target=self._read, args=(self._relay,), daemon=True).start()
        for message, body in list(self._open.values()):
            self._write(message, body)

    def _write(self, message: Json, body: bytes) -> None:
        """Send the relay a message, if there is a relay."""
        if self._relay is not None:
            with suppress(OSError):  # the reading thread notices that the relay is gone
                write_frame(self._relay, message, [body])

    def _read(self, relay: socket.socket) -> None:
        """Queue a relay's answers; queue None when the relay is gone."""
        try:
            while True:
                message, buffers = read_frame(relay)
                self._open.pop(message["nonce"], None)
                if message["op"] == "reply":
                    self._answers.put(Delivered(message["name"], message["header"], b"".join(buffers)))
                else:
                    self._answers.put(Undelivered(message["name"], message["nonce"], message["why"]))
        except (EOFError, OSError, ValueError, KeyError):
            self._answers.put(None)
