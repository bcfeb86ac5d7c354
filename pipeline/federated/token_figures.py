"""The loss of every target token under an adapter, and the entropy of its prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from pipeline.federated.head import cross_entropy_through_head, entropies_through_head
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Head, Prefix, targets_of
from pipeline.model.entry import Entry

BATCH = 16

Load = Callable[[Sequence[str]], list[Prefix]]
"""Keys of stored prefixes -> the prefixes, on the device that trains."""


class BackboneWithHead(Protocol):
    """A backbone and its head, as training and losses need them."""

    @property
    def device(self) -> torch.device: ...

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The final hidden states that predict the targets, of all examples in a row: (Σ T_i, width)."""

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """See `Head`."""

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Each token's surface text."""


def token_cross_entropy(
    backbone: BackboneWithHead,
    load: Load,
    entries: Sequence[Entry],
    adapter: Adapter,
    measure: Callable[[Head, Tensor, Tensor], Tensor] = cross_entropy_through_head,
) -> list[Tensor]:
    """The loss of every target token in nats, or another measure: a tensor (T_i,) per example.

    Examples of similar length share a batch.
    """
    results: dict[int, Tensor] = {}
    adapter = on_device(adapter, backbone.device)
    by_length = sorted(range(len(entries)), key=lambda i: entries[i].tokens)
    for at in range(0, len(entries), BATCH):
        chosen = by_length[at : at + BATCH]
        prefixes = load([entries[i].key for i in chosen])
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, adapter)
        found = measure(backbone.head, hidden, targets_of(prefixes)).cpu()
        results |= dict(zip(chosen, torch.split(found, [entries[i].tokens for i in chosen]), strict=True))
    return [results[i] for i in range(len(entries))]


def token_entropies(backbone: BackboneWithHead, load: Load, entries: Sequence[Entry], adapter: Adapter) -> list[Tensor]:
    """The entropy of every prediction in nats: a tensor (T_i,) per example."""
    return token_cross_entropy(backbone, load, entries, adapter, entropies_through_head)
