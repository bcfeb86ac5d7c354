"""An encoder under a task's head, as training and losses need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pipeline.tasks.task import EncoderTask, UnitsTask

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from pipeline.model.backbone import Prefix
    from pipeline.model.encoder import Encoder


@dataclass(frozen=True)
class EncoderWithHead:
    """The outputs of an encoder and a task's head; see `head.BackboneWithHead`."""

    encoder: Encoder
    task: EncoderTask
    ragged = True  # whether outputs may be as wide as the longest example of their batch

    @property
    def device(self) -> torch.device:
        return self.encoder.device

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The task's logits (items, classes)."""
        return self.task.outputs(self.encoder, prefixes, adapter)

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        return hidden

    def states_and_logits(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The states before the head's last layer, then its logits: (items, width + classes)."""
        return cast("UnitsTask", self.task).states_and_logits(self.encoder, prefixes, adapter)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """No text: a class has none."""
        return [""] * len(tokens)


def to_store(encoder: Encoder, task: EncoderTask, prefix: Prefix) -> Prefix:
    """The part of an example's prefix that is stored: where nothing but the head trains, what the head reads."""
    return prefix if encoder.trained or encoder.stores_tokens else task.head_input(encoder, prefix)
