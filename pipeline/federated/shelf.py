"""What each client keeps, of any number of clients: the last used in memory, the others in the checkpoint."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, NamedTuple, TypeVar

from pipeline.federated.blobs import Blobs, Get, Put

T = TypeVar("T")
HELD = 8
"""Clients whose tensors are in memory at once."""


class Form(NamedTuple, Generic[T]):
    """How something made of tensors becomes a record of JSON, which names their blobs, and back."""

    fold: Callable[[T, Put], Any]
    unfold: Callable[[Any, Get], T]


class Shelf(MutableMapping[str, T]):
    """A client's name -> what it keeps; a dict to whoever uses it.

    Values are never changed in place: a new one is set.

    Args:
        records: of clients whose values lie in blobs already.
        held: so many are in memory at once.
    """

    def __init__(
        self, blobs: Blobs, form: Form[T], records: Mapping[str, Any] | None = None, *, held: int = HELD
    ) -> None:
        self._blobs, self._form, self._held = blobs, form, held
        self._records: dict[str, Any] = dict(records or {})
        self._live: OrderedDict[str, T] = OrderedDict()

    def record(self, name: str) -> Any:
        """What a checkpoint writes down of a client; its tensors are in blobs after it.

        Raises:
            KeyError: no such client.
        """
        if self._records[name] is None:
            self._records[name] = self._form.fold(self._live[name], self._blobs.put)
        return self._records[name]

    def recorded(self, name: str) -> Any:
        """What is written down of a client already, else None."""
        return self._records[name]

    def put(self, name: str, value: T, record: Any = None) -> None:
        """Set a value; `record`: where its tensors are in blobs already, and need not be packed again."""
        self._records[name] = record
        self._hold(name, value)

    def __setitem__(self, name: str, value: T) -> None:
        self.put(name, value)

    def __getitem__(self, name: str) -> T:
        if name not in self._live:
            self._hold(name, self._form.unfold(self._records[name], self._blobs.get))
        self._live.move_to_end(name)
        return self._live[name]

    def __delitem__(self, name: str) -> None:
        del self._records[name]
        self._live.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def clear(self) -> None:
        # The inherited ones would read every file.
        self._records.clear()
        self._live.clear()

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def _hold(self, name: str, value: T) -> None:
        self._live[name] = value
        self._live.move_to_end(name)
        while len(self._live) > self._held:
            self.record(next(iter(self._live)))
            self._live.popitem(last=False)
