"""What training and losses read of a run's examples: stored prefixes, or token ids if the run uses no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pipeline.federated.token_figures import Load
from pipeline.model.backbone import Backbone, Head, Prefix
from pipeline.model.entry import Entry
from pipeline.model.store import PrefixStore
from pipeline.model.uncached import UncachedBackbone, load_ids


class Reading(Protocol):
    """The fields of an order that decide how a run reads its examples."""

    @property
    def uncached(self) -> bool:
        """Whether the frozen layers run on every batch, rather than once for the store."""

    @property
    def adapted_positions(self) -> str:
        """`all`, or `target` if adapters act on the target's positions alone."""


@dataclass(frozen=True)
class TaskBackbone:
    """A backbone with its task's head; see `BackboneWithHead`."""

    backbone: Backbone | UncachedBackbone
    head: Head

    @property
    def device(self) -> torch.device:
        return self.backbone.device

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        return self.backbone.target_hidden(prefixes, adapter)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        return self.backbone.pieces(tokens)


def inputs(
    reading: Reading,
    backbone: Backbone,
    loader: PrefixStore,
    entries: Sequence[Entry],
    *,
    dropped: float = 0.0,
) -> tuple[TaskBackbone, Load]:
    """The backbone with its head, and a function that loads examples.

    Args:
        reading: how the run reads its examples.
        backbone: the frozen weights.
        loader: reads the store.
        entries: all examples that will be loaded.
        dropped: the dropout probability of a run without the store.
    """
    head = backbone.head
    if not reading.uncached:
        return TaskBackbone(backbone, head), loader.training
    uncached = UncachedBackbone(backbone, reading.adapted_positions == "all", dropped)
    return TaskBackbone(uncached, head), load_ids(entries, backbone.device)
