"""A backbone that trains without the store: a full pass a step, for what the store rules out.

Adapted prompt positions and dropout make the frozen part of an example another at every step; another number of adapted
layers would need a store of its own. Such runs are made once each, small, to see what the store's rules cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.model.backbone import Backbone, Prefix, Rendered
from pipeline.model.entry import Entry


@dataclass(frozen=True)
class UncachedBackbone:
    """What a client's training and its losses need of a backbone, from token ids instead of stored prefixes."""

    backbone: Backbone
    everywhere: bool
    dropped: float

    @property
    def device(self) -> torch.device:
        return self.backbone.device

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """See `Backbone.target_hidden`; a prefix holds `source` and `targets` alone."""
        rendered = [Rendered(tuple(p["source"].tolist()), tuple(p["targets"].tolist()), 0, 0) for p in prefixes]
        return self.backbone.reference_hidden(rendered, adapter, everywhere=self.everywhere, dropped=self.dropped)

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        return self.backbone.head(hidden, targets)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        return self.backbone.pieces(tokens)


def load_ids(entries: Sequence[Entry], device: torch.device) -> Callable[[Sequence[str]], list[Prefix]]:
    """Keys -> token ids, as a loader of prefixes gives them."""
    known = {entry.key: entry for entry in entries}

    def load(keys: Sequence[str]) -> list[Prefix]:
        return [
            {"source": torch.tensor(known[key].source), "targets": torch.tensor(known[key].target, device=device)}
            for key in keys
        ]

    return load
