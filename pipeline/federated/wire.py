"""The format of adapters and memory on the wire between client and server, and its size in bytes."""

from dataclasses import replace
from typing import TypeVar

from safetensors import SafetensorError

from pipeline.federated.algorithm import Sent, Update
from pipeline.model.adapter import Adapter, pack, packed_size, unpack

ADAPTER, MEMORY = "adapter/", "memory/"  # prefixes of the tensors' names on the wire
DAMAGED = "is truncated or damaged"
Message = TypeVar("Message", Sent, Update)


def transmitted(message: Message) -> tuple[Message, int]:
    """A copy of a message as it arrives at the receiver, and its size in bytes on the wire.

    The wire is lossless, so nothing is serialized here: that took a tenth of a round for an encoder.
    """
    copy = replace(message, adapter=_copied(message.adapter), memory=_copied(message.memory))
    return copy, packed_size(tensors_of(message))


def _copied(record: Adapter) -> Adapter:
    """Copies in the order of `deserialize`."""
    return {name: record[name].detach().cpu().clone() for name in sorted(record)}


def serialize(message: Sent | Update) -> bytes:
    """A message's tensors in the safetensors format."""
    return pack(tensors_of(message))


def tensors_of(message: Sent | Update) -> Adapter:
    """Adapter and memory in one dict, by their names on the wire."""
    named = {ADAPTER + name: tensor for name, tensor in message.adapter.items()}
    return named | {MEMORY + name: tensor for name, tensor in message.memory.items()}


def deserialize(content: bytes) -> Sent:
    """The tensors of a serialized message. Raises ValueError if it is damaged or truncated."""
    try:
        arrived = unpack(content)
    except (SafetensorError, ValueError):
        raise ValueError(DAMAGED) from None
    adapter, memory = (
        {name.removeprefix(record): tensor for name, tensor in arrived.items() if name.startswith(record)}
        for record in (ADAPTER, MEMORY)
    )
    return Sent(adapter, memory)
