"""An example in a run's index of the prefix store."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """An example's id, the key of its prefix in the store, and its numbers of target and source tokens.

    `source` and `target` are its token ids, for runs that train without the store.
    """

    id: str
    key: str
    tokens: int
    source_tokens: int = 0
    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()


def entry_file(store: Path, key: str) -> Path:
    """The path of an entry in the prefix store."""
    return store / key[:2] / f"{key}.safetensors"
