"""Flower's SuperNode with shorter waits, which can register again right after a kill. Run by Flower's Python.

It changes flwr 1.42.0 in three ways before Flower's main function runs. An idle loop sleeps half a second instead of
three. It polls sooner for objects that are still being uploaded. It deactivates the node's previous registration, which
the SuperLink would consider online for up to 60 s after a kill, and so refuse a second one.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import types
from contextlib import suppress
from pathlib import Path

import httpx
from flwr.proto.fleet_pb2 import DeactivateNodeRequest
from flwr.supernode import start_client_internal as loop
from flwr.supernode.cli import flower_supernode
from flwr.supernode.fleet_http_client import FleetHttpClient

LONGEST_SLEEP = 0.5
KNOWN = Path(os.environ["FLWR_HOME"]) / "node_id"

loop.time = types.SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, LONGEST_SLEEP)))
loop.pull_objects = functools.partial(loop.pull_objects, initial_backoff=0.2, backoff_cap=1.0)
activate = FleetHttpClient.ActivateNode


def signed_off_first(client: FleetHttpClient, request: object) -> object:
    """Flower's `ActivateNode`, after deactivating this node's previous registration."""
    if KNOWN.is_file():
        with suppress(httpx.HTTPStatusError):  # it was not registered
            client.DeactivateNode(DeactivateNodeRequest(node_id=int(KNOWN.read_text(encoding="utf-8"))))
    response = activate(client, request)
    KNOWN.write_text(str(response.node_id), encoding="utf-8")
    return response


FleetHttpClient.ActivateNode = signed_off_first
sys.exit(flower_supernode())
