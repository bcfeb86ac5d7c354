"""Reading the prefix store on the way to a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from pipeline.model.backbone import Prefix
from pipeline.model.store import PrefixStore


class Loader:
    """Prefixes by key, from a store's folder to one device."""

    def __init__(self, store: Path, device: torch.device) -> None:
        self._store, self._device = PrefixStore(store), device

    def training(self, keys: Sequence[str]) -> list[Prefix]:
        return [self._moved(prefix) for prefix in self._store.training(keys)]

    def generation(self, keys: Sequence[str]) -> Sequence[Prefix]:
        """What decoding starts from, left on the CPU; each is read when it is asked for: a batch is several GB."""
        return _Lazily(keys, lambda key: self._store.training([key])[0] | self._store.generation(key))

    def _moved(self, prefix: Prefix) -> Prefix:
        return {name: tensor.to(self._device) for name, tensor in prefix.items()}


class _Lazily(Sequence[Prefix]):
    def __init__(self, keys: Sequence[str], read: Callable[[str], Prefix]) -> None:
        self._keys, self._read = keys, read

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        return self._read(self._keys[index])
