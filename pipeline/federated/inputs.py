"""What training and losses read of a run's examples: stored prefixes, or token ids where the run has no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pipeline.federated.token_figures import Load
from pipeline.model.backbone import Backbone, Head, Prefix
from pipeline.model.entry import Entry
from pipeline.model.loader import Loader
from pipeline.model.uncached import UncachedBackbone, load_ids
from pipeline.tasks.task import Task


class Reading(Protocol):
    """What decides how a run reads its examples, of its training's or its evaluation's order."""

    @property
    def uncached(self) -> bool: ...

    @property
    def adapted_positions(self) -> str: ...


@dataclass(frozen=True)
class Seen:
    """A backbone as a run sees it, under its task's head; see `token_figures.Hidden`."""

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
    task: Task,
    backbone: Backbone,
    loader: Loader,
    entries: Sequence[Entry],
    *,
    dropped: float = 0.0,
) -> tuple[Seen, Load]:
    """The backbone as a run sees it, and what loads its examples; `entries` are all that will be asked for.

    Args:
        dropped: the probability that dropout drops a hidden unit, of a run without the store.
    """
    head = task.head(backbone)
    if not reading.uncached:
        return Seen(backbone, head), loader.training
    uncached = UncachedBackbone(backbone, reading.adapted_positions == "all", dropped)
    return Seen(uncached, head), load_ids(entries, backbone.device)
