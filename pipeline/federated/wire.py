"""What travels between a client and the server, and how many bytes it is."""

from __future__ import annotations

from safetensors import SafetensorError

from pipeline.federated.algorithm import Memory
from pipeline.model.adapter import Adapter, pack, packed_size, unpack

ADAPTER, MEMORY = "adapter/", "memory/"
"""What the two records' names begin with on the wire."""


def travelled(adapter: Adapter, memory: Memory) -> tuple[Adapter, Memory, int]:
    """Two records as they arrive, in no tensor of the sender's, and the bytes that they are on the wire.

    The wire is lossless, so that nothing need be packed: of a whole encoder that took a tenth of a round.
    """
    size = packed_size(named_records(adapter, memory))
    return _copied(adapter), _copied(memory), size


def _copied(record: Adapter) -> Adapter:
    """In the order in which `unpacked` gives it."""
    return {name: record[name].detach().cpu().clone() for name in sorted(record)}


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
