"""Loading prefixes from the store to a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from pipeline.model.backbone import Prefix
from pipeline.model.store import PrefixStore


class Loader:
    """Loads prefixes by key from a store's folder to one device.

    Args:
        cache_bytes: at most so many bytes of prefixes stay in memory, those that are read first: opening the file of a
            short text takes longer than reading it.
    """

    def __init__(self, store: Path, device: torch.device, cache_bytes: int = 0) -> None:
        self._store, self._device, self._room = PrefixStore(store), device, cache_bytes
        self._cached: dict[str, Prefix] = {}

    def training(self, keys: Sequence[str]) -> list[Prefix]:
        """What a loss needs of each example; raises as `PrefixStore.training` does."""
        return [self._cached.get(key) or self._read(key) for key in keys]

    def _read(self, key: str) -> Prefix:
        (prefix,) = self._store.training([key])
        there = {name: tensor.to(self._device) for name, tensor in prefix.items()}
        size = sum(tensor.nbytes for tensor in there.values())
        if size <= self._room:
            self._room -= size
            # Copies: the store's tensors may be views of a mapped file.
            self._cached[key] = there = {name: tensor.clone() for name, tensor in there.items()}
        return there
