"""Messages on a Unix socket: a length, a header of JSON, and the buffers whose sizes the header tells.

The standard library alone: Flower's environment has neither torch nor the rest of Quorum.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

LENGTH = struct.Struct("!I")
LARGEST_HEADER = 1 << 20
"""Bytes; a longer one is no header of ours."""
HANG_UPS = 3
"""So often a worker may end a connection without an answer before nobody asks it again."""


def write_frame(to: socket.socket, header: Mapping[str, Any], buffers: Sequence[bytes | bytearray] = ()) -> None:
    text = json.dumps({**header, "sizes": [len(buffer) for buffer in buffers]}).encode()
    to.sendall(LENGTH.pack(len(text)) + text)
    for buffer in (buffer for buffer in buffers if buffer):  # who expects no more bytes may be gone already
        to.sendall(buffer)


def read_frame(of: socket.socket) -> tuple[dict[str, Any], list[bytearray]]:
    """
    Raises:
        EOFError: the other end is gone.
        ValueError: what came is no frame.
    """
    (length,) = LENGTH.unpack(_exactly(of, LENGTH.size))
    if length > LARGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(_exactly(of, length))
    return header, [_exactly(of, size) for size in header.pop("sizes")]


def exchange(
    path: str, header: Mapping[str, Any], buffers: Sequence[bytes | bytearray], rest: float = 1.0
) -> tuple[dict[str, Any], list[bytearray]]:
    """What a worker answers. One that is not there is waited for: its site was killed, and is to be started again.

    Args:
        rest: seconds between two tries.

    Raises:
        EOFError, OSError: it is there, and hangs up again and again.
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
        except (EOFError, ConnectionError):  # it was killed while it worked, or will not answer this
            if not left:
                raise
            left -= 1
        time.sleep(rest)


def _exactly(of: socket.socket, count: int) -> bytearray:
    content = bytearray(count)
    view = memoryview(content)
    at = 0
    while at < count:
        got = of.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return content
