"""Client -> what it stores, for any number of clients: the last used in memory, the others in the checkpoint."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

from pipeline.federated.blobs import Blobs
from pipeline.workspace.record import Json

T = TypeVar("T")
IN_MEMORY = 8
"""The number of clients whose tensors are in memory at once."""


class ClientStore(MutableMapping[str, T], Generic[T]):
    """A dict from client to value that writes the least recently used values to blobs.

    Values must not be changed in place: assign a new one. A value's record is a JSON object that has the name of a blob
    for each of its dicts of tensors.

    Args:
        kind: the values' class, a dataclass of numbers and dicts of tensors.
        records: the records of clients whose values are in blobs already.
        in_memory: the number of values in memory at once.
    """

    def __init__(
        self, blobs: Blobs, kind: type[T], records: Mapping[str, Json] | None = None, *, in_memory: int = IN_MEMORY
    ) -> None:
        self._blobs, self._kind, self._in_memory = blobs, kind, in_memory
        self._records: dict[str, Json | None] = dict(records or {})
        self._live: OrderedDict[str, T] = OrderedDict()

    def record(self, name: str) -> Json:
        """A client's record for a checkpoint; writes its tensors to blobs if they are not there yet.

        Raises:
            KeyError: there is no such client.
        """
        record = self._records[name]
        if record is None:
            fields = vars(self._live[name])
            record = {key: self._blobs.put(v) if isinstance(v, Mapping) else v for key, v in fields.items()}
            self._records[name] = record
        return record

    def existing_record(self, name: str) -> Json | None:
        """A client's record if its tensors are in blobs already; otherwise None."""
        return self._records[name]

    def put(self, name: str, value: T, record: Json | None = None) -> None:
        """Set a value, and write the least recently used ones out.

        With a `record`, its tensors are in blobs already and need not be written again.
        """
        self._records[name] = record
        self._live[name] = value
        self._live.move_to_end(name)
        while len(self._live) > self._in_memory:
            self.record(next(iter(self._live)))
            self._live.popitem(last=False)

    def __setitem__(self, name: str, value: T) -> None:
        self.put(name, value)

    def __getitem__(self, name: str) -> T:
        if name not in self._live:
            record: Any = self._records[name]
            fields = {key: self._blobs.get(v) if isinstance(v, str) else v for key, v in record.items()}
            self.put(name, self._kind(**fields), record)
        self._live.move_to_end(name)
        return self._live[name]

    def __delitem__(self, name: str) -> None:
        del self._records[name]
        self._live.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._records  # The inherited method would read the blobs, and so would that of `clear`.

    def clear(self) -> None:
        self._records.clear()
        self._live.clear()

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
