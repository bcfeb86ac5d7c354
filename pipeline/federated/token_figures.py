"""A measure of every target token under an adapter: its loss, or the entropy of its prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from pipeline.federated.head import through_head
from pipeline.federated.objectives.cross_entropy import Measure, cross_entropy
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Prefix, targets_of
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


def per_token(
    backbone: BackboneWithHead,
    load: Load,
    entries: Sequence[Entry],
    adapter: Adapter,
    measure: Measure = cross_entropy,
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
        found = through_head(backbone.head, hidden, targets_of(prefixes), measure).cpu()
        results |= dict(zip(chosen, torch.split(found, [entries[i].tokens for i in chosen]), strict=True))
    return [results[i] for i in range(len(entries))]
