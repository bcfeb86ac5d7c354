"""What training and losses read of examples, on a device: stored prefixes, or token ids where a run has no store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pipeline import layout
from pipeline.federated.token_losses import Hidden, Load
from pipeline.model.backbone import Backbone, Prefix
from pipeline.model.entry import Entry
from pipeline.model.store import PrefixStore
from pipeline.model.uncached import UncachedBackbone, load_ids
from pipeline.spec import EvaluateSpec, TrainSpec


class Loader:
    """Prefixes by key, on one device."""

    def __init__(self, device: torch.device) -> None:
        self._store, self._device = PrefixStore(layout.store()), device

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


def inputs(
    spec: TrainSpec | EvaluateSpec,
    backbone: Backbone,
    loader: Loader,
    entries: Sequence[Entry],
    *,
    dropped: float = 0.0,
) -> tuple[Hidden, Load]:
    """The backbone as a run sees it, and what loads its examples; `entries` are all that will be asked for.

    Args:
        dropped: the probability that dropout drops a hidden unit, of a run without the store.
    """
    if not spec.uncached:
        return backbone, loader.training
    seen = UncachedBackbone(backbone, spec.adapted_positions == "all", dropped)
    return seen, load_ids(entries, backbone.device)
