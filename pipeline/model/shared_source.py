"""Decoding many rows that read few sources.

The beams of one example, and one example under several adapters, attend to the same keys and values: kept once a
source, they are read once a step and not once a row. What a row has written is its own. The softmax over both parts is
the mean of the softmax over each, weighted by their shares of the total: σ(logsumexp(far) − logsumexp(near)) is the
source's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.model.backbone import closed_up


class SharedSource:
    """Keys and values of sources and of what each row has grown; transformers' cache interface, and attention over it.

    Args:
        keys, values: of the sources, (layers, sources, key-value heads, longest, d).
        seen: boolean (sources, longest), false where a source is padded.
        owners: each row's source.
        room: how many tokens a row can grow by.
    """

    def __init__(self, keys: Tensor, values: Tensor, seen: Tensor, owners: Sequence[int], room: int) -> None:
        self._keys, self._values = keys, values
        self._bias = torch.zeros(seen.shape, dtype=keys.dtype, device=keys.device).masked_fill(~seen, -torch.inf)
        layers, _, heads, _, d = keys.shape
        # Never read past what has grown, so not filled: it is the largest buffer of all.
        self._new_keys = keys.new_empty(layers, len(owners), heads, room, d)
        self._new_values = torch.empty_like(self._new_keys)
        self._seat(owners)
        self.grown = 0

    def _seat(self, owners: Sequence[int]) -> None:
        """A place for each row among those of its source, of which every source has as many."""
        self._owners = list(owners)
        self._places = max(Counter(owners).values())
        taken: Counter[int] = Counter()
        seats = []
        for owner in owners:
            seats.append(owner * self._places + taken[owner])
            taken[owner] += 1
        self._seats = torch.tensor(seats, device=self._keys.device)

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        end = self.grown + keys.shape[2]
        self._new_keys[layer, :, :, self.grown : end] = keys
        self._new_values[layer, :, :, self.grown : end] = values
        return self._new_keys[layer, :, :, :end], self._new_values[layer, :, :, :end]

    def attend(self, layer: int, query: Tensor, keys: Tensor, values: Tensor, scaling: float) -> Tensor:
        """Attention of one new token a row: query (rows, heads, 1, d), grown keys and values as `update` gave them.

        Returns:
            (rows, 1, heads, d).
        """
        rows, heads, _, d = query.shape
        sources, shared_heads = self._keys.shape[1:3]
        groups = heads // shared_heads
        own = query.reshape(rows, shared_heads, groups, d) * scaling
        seated = own.new_zeros(sources * self._places, shared_heads, groups, d)
        seated[self._seats] = own
        asked = seated.view(sources, self._places, shared_heads, groups, d).transpose(1, 2).flatten(2, 3)
        far, far_total = _attended(asked, self._keys[layer], self._values[layer], self._bias[:, None, None])
        near = own @ keys.transpose(-1, -2)
        share = torch.sigmoid(self._unseated(far_total) - near.logsumexp(-1, keepdim=True))
        attended = torch.lerp(near.softmax(-1) @ values, self._unseated(far), share)
        return attended.reshape(rows, 1, heads, d)

    def _unseated(self, seated: Tensor) -> Tensor:
        """(sources, key-value heads, places x groups, n) -> (rows, key-value heads, groups, n)."""
        sources, heads, _, n = seated.shape
        return seated.view(sources, heads, self._places, -1, n).transpose(1, 2).flatten(0, 1)[self._seats]

    def select(self, rows: Tensor) -> None:
        """Row i becomes what row `rows[i]` was; sources that no row reads any more are dropped."""
        count = rows.shape[0]
        grown = slice(0, self.grown)
        moved = (rows != torch.arange(count, device=rows.device)).nonzero()[:, 0]
        for buffer in (*self._new_keys, *self._new_values):
            buffer[moved, :, grown] = buffer[rows[moved], :, grown]
        self._new_keys, self._new_values = self._new_keys[:, :count], self._new_values[:, :count]
        owners = [self._owners[row] for row in rows.tolist()]
        kept = closed_up(sorted(set(owners)))
        if len(kept) < self._keys.shape[1]:
            for place, source in enumerate(kept):
                if place != source:
                    for buffer in (self._keys, self._values):
                        buffer[:, place] = buffer[:, source]
                    self._bias[place] = self._bias[source]
            self._keys, self._values = self._keys[:, : len(kept)], self._values[:, : len(kept)]
            self._bias = self._bias[: len(kept)]
            owners = [kept.index(owner) for owner in owners]
        self._seat(owners)


def _attended(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(q kᵀ + bias) v and the logarithm of the softmax's total: (..., queries, d) and (..., queries, 1)."""
    if query.device.type == "cpu":
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        mean, total = flash(query, keys, values, attn_mask=bias.expand(-1, 1, query.shape[2], -1), scale=1.0)
        return mean, total[..., None]
    scores = query @ keys.transpose(-1, -2) + bias
    return scores.softmax(-1) @ values, scores.logsumexp(-1, keepdim=True)
