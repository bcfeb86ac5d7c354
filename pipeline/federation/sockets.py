"""The server's end of the transport: a Unix socket between the training and a relay, which passes messages to Flower.

The relay is one of Flower's processes and may die. The link then starts another and sends it every open request. Nodes
answer a repeated request with the same bytes, so nothing is computed twice.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipeline.engines.remote import Delivered, Undelivered
from pipeline.errors import QuorumError
from pipeline.federation.flower.app.frames import read_frame, write_frame
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json

CONNECT_SECONDS = 120.0


class SocketLink:
    """A `Link` over a Unix socket.

    Args:
        path: the socket's path.
        start_relay: starts a relay, which connects to the socket.
        most_relays: how many relays to start without an answer between them before giving up.
    """

    def __init__(self, path: Path, start_relay: Callable[[], None], most_relays: int = 20) -> None:
        self._start_relay, self._most, self._left = start_relay, most_relays, most_relays
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(1)
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
        """Start a relay and send it every open request.

        Raises:
            QuorumError: none connects, or too many have died.
        """
        if not self._left:
            raise QuorumError(
                "federation: Flower's relay dies again and again; read federation/state/superexec.log, then run again"
            )
        self._left -= 1
        self._start_relay()
        try:
            self._relay, _ = self._listener.accept()
        except TimeoutError:
            raise QuorumError(
                f"federation: no relay within {CONNECT_SECONDS:g} s; read federation/state/superlink.log, then "
                "run again"
            ) from None
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
                if message["op"] == "reply":
                    self._open.pop(message["nonce"], None)
                    self._answers.put(Delivered(message["name"], message["header"], b"".join(buffers)))
                elif message["op"] == "error":
                    self._open.pop(message["nonce"], None)
                    self._answers.put(Undelivered(message["name"], message["nonce"], message["why"]))
                else:
                    say(f"federation: {message.get('say', '')}")
        except (EOFError, OSError, ValueError, KeyError):
            self._answers.put(None)
