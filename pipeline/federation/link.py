"""The server's end of what carries messages: a Unix socket, at whose other end a relay hands them to Flower.

The relay is a process of Flower's, which may die; a new one is asked for then, and every open question put to it again.
Nodes answer what they have answered before with the same bytes, so that nothing is done twice.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.engines.remote import Delivered, Undelivered
from pipeline.errors import QuorumError
from pipeline.federation.flower.app.frames import read_frame, write_frame
from pipeline.workspace.progress import say

CONNECT_SECONDS = 120.0


class SocketLink:
    """See `Link`.

    Args:
        path: where the socket is made.
        start_relay: has a relay started that connects to the socket.
        most_relays: so many are started without an answer between them, at most, before this gives up.
    """

    def __init__(self, path: Path, start_relay: Callable[[], None], most_relays: int = 20) -> None:
        self._start_relay, self._most, self._left = start_relay, most_relays, most_relays
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        path.chmod(0o600)
        self._listening.listen(1)
        self._listening.settimeout(CONNECT_SECONDS)
        self._open: dict[str, tuple[dict[str, Any], bytes]] = {}
        self._coming: queue.SimpleQueue[Delivered | Undelivered | None] = queue.SimpleQueue()
        self._relay: socket.socket | None = None

    def send(self, name: str, nonce: str, header: str, body: bytes) -> None:
        message = {"op": "send", "name": name, "nonce": nonce, "header": header}
        self._open[nonce] = message, body
        if self._relay is None:
            self._connect()
        else:
            self._hand_over(message, body)

    def receive(self, seconds: float | None) -> Delivered | Undelivered | None:
        while True:
            if self._relay is None:
                self._connect()
            try:
                coming = self._coming.get(timeout=seconds)
            except queue.Empty:
                return None
            if coming is not None:
                self._left = self._most
                return coming
            self._relay = None  # it is gone

    def forget(self, nonce: str) -> None:
        self._open.pop(nonce, None)
        self._hand_over({"op": "forget", "nonce": nonce}, b"")

    def close(self) -> None:
        """The relay ends when its socket does."""
        if self._relay is not None:
            self._relay.close()
        self._listening.close()

    def _connect(self) -> None:
        """A new relay, and every open question put to it.

        Raises:
            QuorumError: none comes, or too many have died.
        """
        if not self._left:
            raise QuorumError(
                "federation: Flower's relay dies again and again; read federation/state/superexec.log, then run again"
            )
        self._left -= 1
        self._start_relay()
        try:
            self._relay, _ = self._listening.accept()
        except TimeoutError:
            raise QuorumError(
                f"federation: no relay within {CONNECT_SECONDS:g} s; read federation/state/superlink.log, then "
                "run again"
            ) from None
        threading.Thread(target=self._read, args=(self._relay,), daemon=True).start()
        for message, body in list(self._open.values()):
            self._hand_over(message, body)

    def _hand_over(self, message: dict[str, Any], body: bytes) -> None:
        if self._relay is not None:
            with suppress(OSError):  # whoever reads from it finds out, and a new one is started
                write_frame(self._relay, message, [body])

    def _read(self, relay: socket.socket) -> None:
        """What a relay says, until it is gone."""
        try:
            while True:
                told, buffers = read_frame(relay)
                if told["op"] == "reply":
                    self._open.pop(told["nonce"], None)
                    self._coming.put(Delivered(told["name"], told["header"], b"".join(buffers)))
                elif told["op"] == "error":
                    self._open.pop(told["nonce"], None)
                    self._coming.put(Undelivered(told["name"], told["nonce"], told["why"]))
                else:
                    say(f"federation: {told.get('say', '')}")
        except (EOFError, OSError, ValueError, KeyError):
            self._coming.put(None)
