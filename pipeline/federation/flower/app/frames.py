"""Frames on a Unix socket: the header's length (4 bytes, big-endian), a JSON header, and buffers of the sizes in it.

This module imports the standard library only: Flower's environment has neither torch nor the rest of Quorum.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

Header = dict[str, Any]
Buffers = Sequence[bytes | bytearray]
LENGTH = struct.Struct("!I")
LARGEST_HEADER = 1 << 20
"""Bytes; a longer header is refused."""
HANG_UPS = 3
"""How often a worker may close a connection without an answer before `exchange` gives up."""


def write_frame(connection: socket.socket, header: Header, buffers: Buffers = ()) -> None:
    """Send a header and its buffers."""
    text = json.dumps({**header, "sizes": [len(buffer) for buffer in buffers]}).encode()
    connection.sendall(LENGTH.pack(len(text)) + text)
    for buffer in (buffer for buffer in buffers if buffer):  # a reader that expects no more bytes may have gone
        connection.sendall(buffer)


def read_frame(connection: socket.socket) -> tuple[Header, list[bytearray]]:
    """Receive a header and its buffers.

    Raises:
        EOFError: the other end closed the connection.
        ValueError: the bytes are no frame.
    """
    (length,) = LENGTH.unpack(_read_exactly(connection, LENGTH.size))
    if length > LARGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(_read_exactly(connection, length))
    return header, [_read_exactly(connection, size) for size in header.pop("sizes")]


def exchange(path: str, header: Header, buffers: Buffers, rest: float = 1.0) -> tuple[Header, list[bytearray]]:
    """Send a worker a frame and return its answer. A worker that does not listen yet is waited for.

    Args:
        path: the worker's Unix socket.
        rest: seconds between two attempts.

    Raises:
        EOFError, OSError: the worker closes the connection again and again.
    """
    left = HANG_UPS
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as worker:
                worker.connect(path)
                write_frame(worker, header, buffers)
                return read_frame(worker)
        except (ConnectionRefusedError, FileNotFoundError):
            pass
        except (EOFError, ConnectionError):  # killed while it worked, or it does not answer this
            if not left:
                raise
            left -= 1
        time.sleep(rest)


def _read_exactly(connection: socket.socket, count: int) -> bytearray:
    """The next `count` bytes."""
    content = bytearray(count)
    view = memoryview(content)
    at = 0
    while at < count:
        got = connection.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return content
