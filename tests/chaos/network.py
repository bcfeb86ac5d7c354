"""A network that can be cut: a node connects to a port here, and what it says goes on to the proxy."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class Network:
    """Forwards every connection, until it is cut: then there is none, and none is taken. A context manager.

    Args:
        port: on loopback, where nodes connect.
        onward: that of the proxy.
    """

    def __init__(self, port: int, onward: int) -> None:
        self._port, self._onward = port, onward
        self._listening: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Network:
        self.mend()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cut()

    def mend(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def cut(self) -> None:
        assert self._listening is not None
        with self._lock:
            listening, self._listening = self._listening, None
            for one in self._open:
                _close(one)
            self._open.clear()
        _close(listening)

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                threading.Thread(target=self._forward, args=(near,), daemon=True).start()

    def _forward(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._onward))
        except OSError:
            _close(near)
            return
        with self._lock:
            if self._listening is None:
                _close(near)
                _close(far)
                return
            self._open |= {near, far}
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 16):
                target.sendall(content)
        with self._lock:
            self._open -= {source, target}
        _close(source)
        _close(target)


def _close(one: socket.socket) -> None:
    """And wake who waits for it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
