"""What travels between a client and the server, and how many bytes it is."""

from __future__ import annotations

from pipeline.model.adapter import Adapter, pack, unpack


def send(adapter: Adapter) -> tuple[Adapter, int]:
    """Put an adapter on the wire and take it off again: (what arrives, bytes). Lossless."""
    content = pack(adapter)
    return unpack(content), len(content)
