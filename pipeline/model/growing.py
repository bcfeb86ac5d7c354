"""Keys and values of the tokens that rows have written, in buffers with room for all that they will write.

transformers' own cache allocates and copies all of it for every token, and again when beams change places. Here a
token is written into its place, and only the rows that move are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """One decoder layer's cache, (rows, heads, grown, d) each; transformers' cache layer interface.

    Args:
        room: the number of tokens by which a row can grow.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate buffers (rows, heads, room, d) for states (rows, heads, new, d)."""
        self.dtype, self.device = key_states.dtype, key_states.device
        # Never read past what has grown, so not filled.
        self._buffers = [new.new_empty(*new.shape[:2], self._room, new.shape[-1]) for new in (key_states, value_states)]
        self._show(0)
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append states (rows, heads, new, d); the keys and values of all tokens so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.keys.shape[2]
        end = start + key_states.shape[2]
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start:end] = new
        self._show(end)
        return self.keys, self.values

    def _show(self, grown: int) -> None:
        self.keys, self.values = (buffer[:, :, :grown] for buffer in self._buffers)

    def select(self, rows: Tensor, moved: Tensor) -> None:
        """Row i becomes what row `rows[i]` was; `moved`: the places i at which `rows[i]` is not i."""
        grown = self.keys.shape[2]
        for buffer in self._buffers:
            buffer[moved, :, :grown] = buffer[rows[moved], :, :grown]
        self._buffers = [buffer[: rows.shape[0]] for buffer in self._buffers]
        self._show(grown)


def select_rows(layers: Sequence[GrowingLayer], rows: Tensor) -> None:
    """Row i of every layer becomes what row `rows[i]` was."""
    moved = (rows != torch.arange(rows.shape[0], device=rows.device)).nonzero()[:, 0]
    for layer in layers:
        layer.select(rows, moved)
