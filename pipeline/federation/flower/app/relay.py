"""Both ends of Flower, as relays without torch: what a Unix socket says becomes a message, and the answer comes back.

Neither looks into what it carries: a header of JSON and the bytes of tensors, in arrays of at most 4 MB.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid, ServerApp
from frames import exchange, read_frame, write_frame

CHUNK = 4 << 20
"""Bytes of an array, at most."""
RAW = "bytes"
"""What Flower is told of how an array's numbers are written: they are bytes."""
LOOK, REST = 0.1, 1.0
"""Seconds between two looks for answers, where some are due and where none is."""
GONE = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)
"""What Flower says of a message that it lost, and of a node that has been away: when it is there it is asked again."""
MONTH = 30 * 24 * 3600.0
"""Seconds for which a question holds: a training step may take days."""

client_app = ClientApp()
server_app = ServerApp()


def content_of(header: str, body: bytes | bytearray) -> RecordDict:
    view = memoryview(body)
    parts = [bytes(view[at : at + CHUNK]) for at in range(0, len(view), CHUNK)]
    arrays = {f"{number:06d}": Array("uint8", (len(part),), RAW, part) for number, part in enumerate(parts)}
    return RecordDict({"header": ConfigRecord({"json": header}), "body": ArrayRecord(arrays)})


def parts_of(content: RecordDict) -> tuple[str, list[bytes]]:
    """A message's header, and the pieces of its body in their order."""
    body = content["body"]
    return str(content["header"]["json"]), [body[name].data for name in sorted(body)]


@client_app.query()
def at_the_node(message: Message, context: Context) -> Message:
    """Hand a request to the node's worker; its answer is the reply."""
    header, parts = parts_of(message.content)
    told, buffers = exchange(str(context.node_config["socket"]), {"header": header}, parts)
    return Message(content_of(told["header"], b"".join(buffers)), reply_to=message)


@server_app.main()
def at_the_server(grid: Grid, context: Context) -> None:
    """Carry what the training asks to nodes, until it closes its socket."""
    with socket.socket(socket.AF_UNIX) as training:
        training.connect(str(context.run_config["socket"]))
        Carrier(grid, training).run()


@dataclass(frozen=True)
class Question:
    """On its way to a node, or waiting for it. `since`: when the node that has it had come.

    `wanted`: whether anyone waits for the answer; one that comes all the same is fetched, and thrown away.
    """

    told: Mapping[str, Any]
    body: bytes
    since: str = ""
    wanted: bool = True


class Carrier:
    """Carries questions and answers. A node that is not there yet is waited for.

    One that went away and came back has lost what it was sent, and nobody is told: it is sent again. Nodes answer what
    they have answered before from what they wrote down.
    """

    def __init__(self, grid: Grid, training: socket.socket) -> None:
        self._grid, self._training = grid, training
        self._orders: queue.SimpleQueue[tuple[Mapping[str, Any], Sequence[bytearray]] | None] = queue.SimpleQueue()
        self._waiting: list[Question] = []
        self._sent: dict[str, Question] = {}
        self._looked = 0.0

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            try:
                order = self._orders.get(timeout=LOOK if self._sent or self._waiting else REST)
            except queue.Empty:
                order = {}, []
            if order is None:
                return
            told, buffers = order
            if told.get("op") == "send":
                self._waiting.append(Question(told, b"".join(buffers)))
                self._looked = 0.0
            elif told.get("op") == "forget":
                self._forget(told["nonce"])
            if self._orders.empty():
                self._push()
                self._pull()

    def _listen(self) -> None:
        try:
            while True:
                self._orders.put(read_frame(self._training))
        except (EOFError, OSError):
            self._orders.put(None)

    def _forget(self, nonce: str) -> None:
        self._waiting = [one for one in self._waiting if one.told["nonce"] != nonce]
        for message, one in self._sent.items():
            if one.told["nonce"] == nonce:
                self._sent[message] = replace(one, body=b"", wanted=False)

    def _push(self) -> None:
        """Hand over what waits, as far as its node is there, and again what went to one that has come anew."""
        if time.monotonic() - self._looked < REST or not (self._waiting or self._sent):
            return
        self._looked = time.monotonic()
        nodes = {node.name: node for node in self._grid.get_nodes() if node.status == "online"}
        for message, one in list(self._sent.items()):
            node = nodes.get(one.told["name"])
            if one.wanted and node is not None and node.last_activated_at != one.since:
                self._waiting.append(one)
                self._sent[message] = replace(one, body=b"", wanted=False)
        left = []
        for one in self._waiting:
            node = nodes.get(one.told["name"])
            if node is not None and (message := self._pushed(one, node.node_id)):
                self._sent[message] = replace(one, since=node.last_activated_at)
            else:
                left.append(one)
        self._waiting = left

    def _pushed(self, one: Question, node: int) -> str:
        """The message's id; empty where the SuperLink does not take it."""
        pushed = list(
            self._grid.push_messages([Message(content_of(one.told["header"], one.body), node, "query", ttl=MONTH)])
        )
        return pushed[0] if pushed else ""

    def _pull(self) -> None:
        """Hand back what has been answered, one by one, so that no two bodies are held at once.

        An answer that has been announced is waited for; Flower gives up one that stops coming after three minutes.
        """
        for message in list(self._sent):
            for reply in self._grid.pull_messages([message]):
                one = self._sent.pop(message)
                if not one.wanted:
                    continue
                told = {key: one.told[key] for key in ("name", "nonce")}
                if reply.has_error() and reply.error.code in GONE:
                    self._waiting.append(one)  # as where a node dies while it sends its answer
                elif reply.has_error():
                    why = f"has code {reply.error.code} of Flower"
                    write_frame(self._training, {"op": "error", "why": why, **told})
                else:
                    header, parts = parts_of(reply.content)
                    write_frame(self._training, {"op": "reply", "header": header, **told}, parts)
