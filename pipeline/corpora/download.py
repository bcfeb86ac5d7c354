"""What an address serves."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace.files import write_bytes

DOWNLOAD_SECONDS, PROBE_SECONDS = 60, 20


def answers(address: str) -> bool:
    """Whether an address serves anything."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=PROBE_SECONDS):
            return True
    except (OSError, ValueError, http.client.HTTPException):
        return False


def download(address: str, path: Path) -> None:
    """Write what an address serves to a file.

    Raises:
        QuorumError: it serves nothing.
    """
    try:
        with urllib.request.urlopen(address, timeout=DOWNLOAD_SECONDS) as answer:
            write_bytes(path, answer.read())
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise QuorumError(
            f"{address}: could not be fetched ({getattr(error, 'reason', error)}); check the network, or set "
            "data_source: mirror or sample"
        ) from None
