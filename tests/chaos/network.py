"""A network that can be cut: a node connects to a port here, and its bytes are forwarded to the proxy."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Network:
    """Forwards every connection until it is cut. A context manager.

    Args:
        port: the port on loopback where nodes connect.
        onward: the proxy's port.
    """

    def __init__(self, port: int, onward: int) -> None:
        self._port, self._onward = port, onward
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = True

    def __enter__(self) -> Network:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def mend(self) -> None:
        listener = socket.create_server(("127.0.0.1", self._port))
        self._open, self._is_cut = {listener}, False
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Close every connection and accept none."""
        with self._lock:
            self._is_cut = True
            for one in self._open:
                _close(one)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self._forward, args=(near,), daemon=True).start()

    def _forward(self, near: socket.socket) -> None:
        """Connect to the proxy, and carry bytes both ways."""
        far = socket.socket()
        with suppress(OSError):
            far.connect(("127.0.0.1", self._onward))
        with self._lock:
            self._open |= {near, far}
            if self._is_cut:
                _close(near)
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_carry, args=(source, target), daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(1 << 16):
            target.sendall(content)
    _close(source)
    _close(target)


def _close(one: socket.socket) -> None:
    """Close a socket and wake the threads that wait for it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
