"""What travels between a client and the server, and how many bytes it is."""

from __future__ import annotations

from safetensors import SafetensorError

from pipeline.federated.algorithm import Memory
from pipeline.model.adapter import Adapter, pack, unpack

ADAPTER, MEMORY = "adapter/", "memory/"
"""What the two records' names begin with on the wire."""


def travelled(adapter: Adapter, memory: Memory) -> tuple[Adapter, Memory, int]:
    """Put two records on the wire and take them off again: (both as they arrive, bytes). Lossless."""
    content = packed(adapter, memory)
    return *unpacked(content), len(content)


def packed(adapter: Adapter, memory: Memory) -> bytes:
    """Two records as they travel."""
    return pack(named_records(adapter, memory))


def named_records(adapter: Adapter, memory: Memory) -> Adapter:
    """Both as one, by the names that they travel under."""
    named = {ADAPTER + name: tensor for name, tensor in adapter.items()}
    return named | {MEMORY + name: tensor for name, tensor in memory.items()}


def unpacked(content: bytes) -> tuple[Adapter, Memory]:
    """
    Raises:
        ValueError: the content is none, or is not whole.
    """
    try:
        arrived = unpack(content)
    except (SafetensorError, ValueError):
        raise ValueError("is not whole") from None
    return _of(arrived, ADAPTER), _of(arrived, MEMORY)


def _of(arrived: Adapter, record: str) -> Adapter:
    return {name.removeprefix(record): tensor for name, tensor in arrived.items() if name.startswith(record)}
