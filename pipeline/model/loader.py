"""Reading the prefix store on the way to a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from pipeline.model.backbone import Prefix
from pipeline.model.store import PrefixStore


class Loader:
    """Prefixes by key, from a store's folder to one device.

    Args:
        held: so many bytes, at most, of prefixes that were read stay in memory; the first, until it is full. Short
            texts' are read faster than their files are opened.
    """

    def __init__(self, store: Path, device: torch.device, held: int = 0) -> None:
        self._store, self._device, self._room = PrefixStore(store), device, held
        self._held: dict[str, Prefix] = {}

    def training(self, keys: Sequence[str]) -> list[Prefix]:
        return [self._held.get(key) or self._read(key) for key in keys]

    def _read(self, key: str) -> Prefix:
        (prefix,) = self._store.training([key])
        there = {name: tensor.to(self._device) for name, tensor in prefix.items()}
        size = sum(tensor.nbytes for tensor in there.values())
        if size <= self._room:
            self._room -= size
            # Copies: what the store gives may be a view of a mapped file.
            self._held[key] = there = {name: tensor.clone() for name, tensor in there.items()}
        return there
