"""Reading the prefix store on the way to a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from pipeline.model.backbone import Prefix
from pipeline.model.store import PrefixStore


class Loader:
    """Prefixes by key, from a store's folder to one device."""

    def __init__(self, store: Path, device: torch.device) -> None:
        self._store, self._device = PrefixStore(store), device

    def training(self, keys: Sequence[str]) -> list[Prefix]:
        prefixes = self._store.training(keys)
        return [{name: tensor.to(self._device) for name, tensor in prefix.items()} for prefix in prefixes]
