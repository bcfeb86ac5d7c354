"""Both ends of Flower, as relays without torch: each passes messages between Flower and a Unix socket.

A relay does not read what it carries: a JSON header, and the bytes of tensors in arrays of at most 4 MB.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid, ServerApp
from frames import Header, exchange, read_frame, write_frame

CHUNK = 4 << 20
"""The most bytes of an array."""
RAW = "bytes"
"""The serialization type of an array in Flower: plain bytes."""
LOOK, REST = 0.1, 1.0
"""Seconds between two polls, while answers are due and while none is."""
GONE = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
"""Errors of a message that Flower lost, or of a node that was away: the request is sent again."""
MONTH = 30 * 24 * 3600.0
"""Seconds until a request expires: a training step may take days."""

client_app = ClientApp()
server_app = ServerApp()


def content_of(header: str, body: bytes | bytearray) -> RecordDict:
    """A header and a body as the content of a Flower message."""
    view = memoryview(body)
    parts = [bytes(view[at : at + CHUNK]) for at in range(0, len(view), CHUNK)]
    arrays = {f"{number:06d}": Array("uint8", (len(part),), RAW, part) for number, part in enumerate(parts)}
    return RecordDict({"header": ConfigRecord({"json": header}), "body": ArrayRecord(arrays)})


def parts_of(content: RecordDict) -> tuple[str, list[bytes]]:
    """A message's header, and the parts of its body in order."""
    body = content["body"]
    return str(content["header"]["json"]), [body[name].data for name in sorted(body)]


@client_app.query()
def at_the_node(message: Message, context: Context) -> Message:
    """Pass a request to the node's worker and return its answer."""
    header, parts = parts_of(message.content)
    answer, buffers = exchange(str(context.node_config["socket"]), {"header": header}, parts)
    return Message(content_of(answer["header"], b"".join(buffers)), reply_to=message)


@server_app.main()
def at_the_server(grid: Grid, context: Context) -> None:
    """Carry the training's requests to nodes until the training closes its socket."""
    with socket.socket(socket.AF_UNIX) as training:
        training.connect(str(context.run_config["socket"]))
        Carrier(grid, training).run()


@dataclass(frozen=True)
class Pending:
    """A request without an answer.

    `message`: its frame's header. `since`: when the node that it was sent to registered. `wanted`: whether the training
    waits for the answer; an unwanted answer is fetched and dropped.
    """

    message: Header
    body: bytes
    since: str = ""
    wanted: bool = True


class Carrier:
    """Carries requests to nodes and answers back. Requests to a node that is offline wait.

    A node that restarts loses the requests that it was sent, without an error, so they are sent again. Nodes store
    their answers and repeat them.
    """

    def __init__(self, grid: Grid, training: socket.socket) -> None:
        self._grid, self._training = grid, training
        self._frames: queue.SimpleQueue[tuple[Header, Sequence[bytearray]] | None] = queue.SimpleQueue()
        self._waiting: list[Pending] = []
        self._sent: dict[str, Pending] = {}
        self._polled = 0.0

    def run(self) -> None:
        """Carry messages until the training closes its socket."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            with suppress(queue.Empty):
                frame = self._frames.get(timeout=LOOK if self._sent or self._waiting else REST)
                if frame is None:
                    return
                message, buffers = frame
                if message["op"] == "send":
                    self._waiting.append(Pending(message, b"".join(buffers)))
                    self._polled = 0.0
                else:
                    self._forget(message["nonce"])
            if self._frames.empty():
                self._push()
                self._pull()

    def _listen(self) -> None:
        """Queue the training's frames; queue None when it closes its socket."""
        try:
            while True:
                self._frames.put(read_frame(self._training))
        except (EOFError, OSError):
            self._frames.put(None)

    def _forget(self, nonce: str) -> None:
        """Drop a request that waits; mark one that was sent as unwanted."""
        self._waiting = [one for one in self._waiting if one.message["nonce"] != nonce]
        for message_id, one in self._sent.items():
            if one.message["nonce"] == nonce:
                self._sent[message_id] = replace(one, body=b"", wanted=False)

    def _push(self) -> None:
        """Send the waiting requests whose nodes are online, and again those whose nodes have restarted."""
        if time.monotonic() - self._polled < REST or not (self._waiting or self._sent):
            return
        self._polled = time.monotonic()
        nodes = {node.name: node for node in self._grid.get_nodes() if node.status == "online"}
        for message_id, one in list(self._sent.items()):
            node = nodes.get(one.message["name"])
            if one.wanted and node is not None and node.last_activated_at != one.since:
                self._waiting.append(one)
                self._sent[message_id] = replace(one, body=b"", wanted=False)
        left = []
        for one in self._waiting:
            node = nodes.get(one.message["name"])
            if node is not None and (message_id := self._send(one, node.node_id)):
                self._sent[message_id] = replace(one, since=node.last_activated_at)
            else:
                left.append(one)
        self._waiting = left

    def _send(self, one: Pending, node: int) -> str:
        """Send a request to a node. The message's id, or "" if the SuperLink refuses it."""
        message = Message(content_of(one.message["header"], one.body), node, "query", ttl=MONTH)
        pushed = list(self._grid.push_messages([message]))
        return pushed[0] if pushed else ""

    def _pull(self) -> None:
        """Pass answers to the training one by one, so that only one body is in memory.

        Flower waits up to three minutes for the rest of an answer that has begun to arrive.
        """
        for message_id in list(self._sent):
            for reply in self._grid.pull_messages([message_id]):
                one = self._sent.pop(message_id)
                if not one.wanted:
                    continue
                about = {key: one.message[key] for key in ("name", "nonce")}
                if reply.has_error() and reply.error.code in GONE:
                    self._waiting.append(one)  # for example, the node died while it sent its answer
                elif reply.has_error():
                    why = f"has code {reply.error.code} of Flower"
                    write_frame(self._training, {"op": "error", "why": why, **about})
                else:
                    header, parts = parts_of(reply.content)
                    write_frame(self._training, {"op": "reply", "header": header, **about}, parts)
