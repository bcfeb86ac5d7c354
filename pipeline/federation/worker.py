"""A node's worker: the one long-lived process of an organisation that has the backbone, the prefixes and the data.

Flower starts a process for each message. That process passes the message to the worker over a Unix socket and returns
the worker's answer.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from pipeline.engines.messages import Request, parsed
from pipeline.engines.node import Node
from pipeline.errors import QuorumError
from pipeline.federation.flower.app.frames import read_frame, write_frame
from pipeline.workspace.progress import say


def serve(node: Node, path: Path, ready: threading.Event | None = None) -> None:
    """Answer requests until the process ends. The node works on one at a time; others wait.

    Args:
        path: the Unix socket to listen on.
        ready: set once the socket listens.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(16)
        if ready is not None:
            ready.set()
        while True:
            relay, _ = listener.accept()
            threading.Thread(target=_answer, args=(node, relay), daemon=True).start()


def _answer(node: Node, relay: socket.socket) -> None:
    """Answer one request. The node stores its answer, so a relay that goes away loses nothing."""
    with relay:
        try:
            message, buffers = read_frame(relay)
            request = parsed(Request, message["header"])
            reply, body = node.answer(request, b"".join(buffers))
            write_frame(relay, {"header": reply.model_dump_json()}, [body])
        except (EOFError, OSError) as error:
            say(f"node: a relay went away ({error!r})")
        except (ValueError, KeyError, QuorumError) as error:
            say(f"node: received no valid request ({error})")
