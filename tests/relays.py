"""What Flower does between a server and its nodes, in a thread, for tests of both."""

import socket
import threading
from collections.abc import Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from pipeline.federation import tracking
from pipeline.federation.flower.app.frames import read_frame, write_frame
from pipeline.federation.server import train_over
from pipeline.federation.site import ServerSite, socket_path
from pipeline.federation.sockets import SocketLink, serve
from pipeline.runs.training import Finished


class Relay:
    """What Flower does, in a thread: connects to the training's socket, hands requests to workers, brings answers back.

    Args:
        dies_after: so many answers; the next one dies after twice as many.
    """

    def __init__(self, training: Path, workers: Mapping[str, Path], dies_after: int | None = None) -> None:
        self._training, self._workers, self._dies_after = training, workers, dies_after
        self.started = 0

    def start(self) -> None:
        self.started += 1
        left = None if self._dies_after is None else self._dies_after * self.started
        threading.Thread(target=self._run, args=(left,), daemon=True).start()

    def _run(self, left: int | None) -> None:
        with socket.socket(socket.AF_UNIX) as training, suppress(OSError, EOFError):
            training.connect(str(self._training))
            while left is None or left > 0:
                told, buffers = read_frame(training)
                if told["op"] != "send":
                    continue
                with socket.socket(socket.AF_UNIX) as worker:
                    worker.connect(str(self._workers[told["name"]]))
                    write_frame(worker, {"header": told["header"]}, buffers)
                    answer, body = read_frame(worker)
                left = None if left is None else left - 1
                if left == 0:
                    return  # with the answer in its hands
                back = {"op": "reply", "name": told["name"], "nonce": told["nonce"], "header": answer["header"]}
                write_frame(training, back, body)


def served(node: Any, path: Path) -> None:
    """Let a node answer at a socket, in a thread."""
    ready = threading.Event()
    threading.Thread(target=serve, args=(node, path, ready), daemon=True).start()
    assert ready.wait(60)


def trained_over(site: ServerSite, workers: Mapping[str, Path]) -> Finished:
    """The operator's training, over a relay to the nodes' workers."""
    relay = Relay(socket_path("training"), workers)
    with closing(SocketLink(socket_path("training"), relay.start)) as link:
        return train_over(link, site)


def scores_sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The scores that a training is going to report; it logs nothing."""
    sent: dict[str, Any] = {}
    monkeypatch.setattr(tracking, "logged", lambda *_: nullcontext(lambda rows: None))
    monkeypatch.setattr(tracking, "finish", lambda run_id, job, scores: sent.update(scores))
    return sent
