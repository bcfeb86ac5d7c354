"""Client -> what it stores, for any number of clients: the last used in memory, the others in the checkpoint."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Generic, NamedTuple, TypeVar

from pipeline.federated.blobs import Blobs, Get, Put
from pipeline.workspace.record import Json

T = TypeVar("T")
IN_MEMORY = 8
"""The number of clients whose tensors are in memory at once."""


class Codec(NamedTuple, Generic[T]):
    """Converts a value made of tensors to a JSON record that names their blobs, and back."""

    to_record: Callable[[T, Put], Any]
    from_record: Callable[[Any, Get], T]


class ClientStore(MutableMapping[str, T]):
    """A dict from client to value that writes the least recently used values to blobs.

    Values must not be changed in place: assign a new one.

    Args:
        blobs: where tensors are written.
        codec: converts values to records.
        records: the records of clients whose values are in blobs already.
        in_memory: the number of values in memory at once.
    """

    def __init__(
        self, blobs: Blobs, codec: Codec[T], records: Json | None = None, *, in_memory: int = IN_MEMORY
    ) -> None:
        self._blobs, self._codec, self._in_memory = blobs, codec, in_memory
        self._records: Json = dict(records or {})
        self._live: OrderedDict[str, T] = OrderedDict()

    def record(self, name: str) -> Any:
        """A client's record for a checkpoint; writes its tensors to blobs if they are not there yet.

        Raises:
            KeyError: there is no such client.
        """
        if self._records[name] is None:
            self._records[name] = self._codec.to_record(self._live[name], self._blobs.put)
        return self._records[name]

    def existing_record(self, name: str) -> Any:
        """A client's record if its tensors are in blobs already; otherwise None."""
        return self._records[name]

    def put(self, name: str, value: T, record: Any = None) -> None:
        """Set a value; with a `record`, its tensors are in blobs already and need not be written again."""
        self._records[name] = record
        self._load(name, value)

    def __setitem__(self, name: str, value: T) -> None:
        self.put(name, value)

    def __getitem__(self, name: str) -> T:
        if name not in self._live:
            self._load(name, self._codec.from_record(self._records[name], self._blobs.get))
        self._live.move_to_end(name)
        return self._live[name]

    def __delitem__(self, name: str) -> None:
        del self._records[name]
        self._live.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def clear(self) -> None:
        """Remove all clients. The inherited method would read every blob."""
        self._records.clear()
        self._live.clear()

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def _load(self, name: str, value: T) -> None:
        """Hold a value in memory, and write the least recently used ones out."""
        self._live[name] = value
        self._live.move_to_end(name)
        while len(self._live) > self._in_memory:
            self.record(next(iter(self._live)))
            self._live.popitem(last=False)
