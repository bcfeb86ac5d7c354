"""A backbone that trains without the store, by a full pass a step, where the store cannot be used.

With adapted prompt positions or dropout the frozen part of an example changes at every step, and another number of
adapted layers would need other entries. Small runs of this kind measure the effect of the store's restrictions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.model.backbone import Backbone, Prefix, Rendered
from pipeline.model.entry import Entry


@dataclass(frozen=True)
class UncachedBackbone:
    """The part of a backbone that training and losses call, on token ids instead of stored prefixes.

    `everywhere`, `dropped`: see `Backbone.reference_hidden`.
    """

    backbone: Backbone
    everywhere: bool
    dropped: float

    @property
    def device(self) -> torch.device:
        return self.backbone.device

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """See `Backbone.target_hidden`; a prefix has `source` and `targets` alone."""
        rendered = [Rendered(tuple(p["source"].tolist()), tuple(p["targets"].tolist()), 0, 0) for p in prefixes]
        return self.backbone.reference_hidden(rendered, adapter, everywhere=self.everywhere, dropped=self.dropped)

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """See `Backbone.head`."""
        return self.backbone.head(hidden, targets)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """See `Backbone.pieces`."""
        return self.backbone.pieces(tokens)


def load_ids(entries: Sequence[Entry], device: torch.device) -> Callable[[Sequence[str]], list[Prefix]]:
    """A function from keys to token ids; it replaces a loader of prefixes."""
    known = {entry.key: entry for entry in entries}

    def load(keys: Sequence[str]) -> list[Prefix]:
        return [
            {"source": torch.tensor(known[key].source), "targets": torch.tensor(known[key].target, device=device)}
            for key in keys
        ]

    return load
