"""A node's worker: the one long-lived process of an organisation that holds backbone, prefixes and data.

Every message of Flower's starts a process, which hands it to this one over a Unix socket and takes the answer back.
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
    """Answer until the process ends; one message at a time is worked on, and others wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(16)
        if ready is not None:
            ready.set()
        while True:
            relay, _ = listening.accept()
            threading.Thread(target=_answer, args=(node, relay), daemon=True).start()


def _answer(node: Node, relay: socket.socket) -> None:
    with relay:
        try:
            told, buffers = read_frame(relay)
            request = parsed(Request, told["header"])
            reply, body = node.answer(request, b"".join(buffers))
            write_frame(relay, {"header": reply.model_dump_json()}, [body])
        except (EOFError, OSError) as error:
            # The relay is gone; the answer is kept, and given to the next that asks.
            say(f"node: a relay went away ({error!r})")
        except (ValueError, KeyError, QuorumError) as error:
            say(f"node: what came is no request ({error})")
