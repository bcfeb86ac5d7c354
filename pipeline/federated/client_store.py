"""Client -> what it stores, for any number of clients: in the checkpoint, and the last used in memory, too."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping

from pipeline.federated.blobs import Blobs, T
from pipeline.workspace.record import Json

IN_MEMORY = 8  # the number of clients whose tensors are in memory at once


class ClientStore(MutableMapping[str, T]):
    """A dict from client to value, whose values are in blobs. They must not be changed in place: assign a new one.

    Args:
        kind: the values' class; see `Blobs.record`.
        records: client -> the record of its value, for each client.
        in_memory: the number of values in memory at once, the last used ones.
    """

    def __init__(
        self, blobs: Blobs, kind: type[T], records: Mapping[str, Json] | None = None, *, in_memory: int = IN_MEMORY
    ) -> None:
        self.records = dict(records or {})
        self._blobs, self._kind, self._in_memory = blobs, kind, in_memory
        self._live: OrderedDict[str, T] = OrderedDict()

    def __setitem__(self, name: str, value: T) -> None:
        self.records[name] = self._blobs.record(value)
        self._use(name, value)

    def __getitem__(self, name: str) -> T:
        value = self._live.get(name)
        return self._use(name, self._blobs.value(self._kind, self.records[name]) if value is None else value)

    def _use(self, name: str, value: T) -> T:
        """Make this the last used value."""
        self._live[name] = value
        self._live.move_to_end(name)
        if len(self._live) > self._in_memory:
            self._live.popitem(last=False)
        return value

    def __delitem__(self, name: str) -> None:
        del self.records[name]
        self._live.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self.records  # The inherited method would read the blobs.

    def __iter__(self) -> Iterator[str]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)
