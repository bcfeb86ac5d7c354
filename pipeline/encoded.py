"""Reading data/encoded/<run>.json: a run's clients, and the entries of their examples in the prefix store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pipeline import layout
from pipeline.corpora.example import SPLITS, Split
from pipeline.files import read_json, sha256_json
from pipeline.model.backbone import Prefix
from pipeline.model.entry import Entry
from pipeline.model.store import PrefixStore
from pipeline.spec import TrainSpec


@dataclass(frozen=True)
class Encoded:
    """What a run's stages know of its data: `index` is the file's whole content, for hashing and statistics."""

    clients: dict[str, dict[Split, list[Entry]]]
    index: dict[str, Any]


def read_encoded(run_id: str) -> Encoded:
    index = read_json(layout.encoded_index(run_id))
    clients: dict[str, dict[Split, list[Entry]]] = {
        client: {
            split: [Entry(e["id"], e["key"], e["tokens"], e["source_tokens"]) for e in splits[split]]
            for split in SPLITS
        }
        for client, splits in index["clients"].items()
    }
    return Encoded(clients, index)


def training_key(training: TrainSpec, encoded: Encoded) -> str:
    """The name of a training: its spec and its data. Two runs with one key are one training under two names."""
    return sha256_json([training.model_dump(mode="json"), encoded.index])


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
