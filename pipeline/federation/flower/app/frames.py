"""Messages on a Unix socket: a length, a header of JSON, and the buffers whose sizes the header tells.

The standard library alone: Flower's environment has neither torch nor the rest of Quorum.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

LENGTH = struct.Struct("!I")
LARGEST_HEADER = 1 << 20
"""Bytes; a longer one is no header of ours."""


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
