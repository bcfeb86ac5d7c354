"""Decoding many rows that read few sources.

The beams of one example, and one example under several adapters, attend to the same keys and values: kept once a
source, they are read once a step and not once a row. `Seats` folds the rows that read one source into one batch entry
with as many queries, which attention keeps apart anyway.

A decoder without an encoder attends to source and own words at once: scores of both are laid side by side, seat by
seat, under one softmax.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.model.backbone import closed_up
from pipeline.model.growing import GrowingLayer, select_rows


class Seats:
    """A place for each row among those of its source, of which every source has as many.

    Where rows sit in their own order, nothing is moved.

    Args:
        owners: each row's source.
        sources: how many there are.
    """

    def __init__(self, owners: Sequence[int], sources: int, device: torch.device) -> None:
        self.owners, self.sources = list(owners), sources
        self.places = max(Counter(owners).values())
        taken: Counter[int] = Counter()
        seats = []
        for owner in owners:
            seats.append(owner * self.places + taken[owner])
            taken[owner] += 1
        self._seats = torch.tensor(seats, device=device)
        self._in_order = seats == list(range(sources * self.places))

    def fold(self, rows: Tensor) -> Tensor:
        """(rows, …) -> (sources, places, …), zero where nobody sits."""
        folded = rows
        if not self._in_order:
            folded = rows.new_zeros(self.sources * self.places, *rows.shape[1:])
            folded[self._seats] = rows
        return folded.view(self.sources, self.places, *rows.shape[1:])

    def unfold(self, folded: Tensor) -> Tensor:
        """(sources, places, …) -> (rows, …)."""
        rows = folded.flatten(0, 1)
        return rows if self._in_order else rows[self._seats]

    def select(self, rows: Tensor) -> tuple[Seats, list[int]]:
        """Seats after row i became what row `rows[i]` was, and which source each of those that are left was."""
        owners = [self.owners[row] for row in rows.tolist()]
        kept = closed_up(sorted(set(owners)))
        place = {source: number for number, source in enumerate(kept)}
        return Seats([place[owner] for owner in owners], len(kept), self._seats.device), kept


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
        self._new = [GrowingLayer(room) for _ in keys]
        self._seats = Seats(owners, keys.shape[1], keys.device)

    @property
    def grown(self) -> int:
        """Tokens that each row has grown by."""
        grown: int = self._new[0].get_seq_length()
        return grown

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        return self._new[layer].update(keys.to(self._keys.dtype), values.to(self._keys.dtype))

    def attend(self, layer: int, query: Tensor, keys: Tensor, values: Tensor, scaling: float) -> Tensor:
        """Attention of one new token a row: query (rows, heads, 1, d), grown keys and values as `update` gave them.

        Returns:
            (rows, 1, heads, d).
        """
        rows, heads, _, d = query.shape
        shared, longest = self._keys.shape[2:4]
        own = (query.reshape(rows, shared, heads // shared, d) * scaling).to(self._keys.dtype)
        far = self._seated(own) @ self._keys[layer].transpose(-1, -2)
        near = self._seated(own @ keys.transpose(-1, -2))
        scores = torch.cat([far.add_(self._bias[:, None, None]), near], -1)
        weights = scores.float().softmax(-1).to(self._values.dtype)
        of_source = self._unseated(weights[..., :longest] @ self._values[layer])
        of_own = self._unseated(weights[..., longest:]) @ values
        return (of_source + of_own).reshape(rows, 1, heads, d)

    def _seated(self, rows: Tensor) -> Tensor:
        """(rows, key-value heads, groups, n) -> (sources, key-value heads, places x groups, n)."""
        return self._seats.fold(rows).transpose(1, 2).flatten(2, 3)

    def _unseated(self, seated: Tensor) -> Tensor:
        """(sources, key-value heads, places x groups, n) -> (rows, key-value heads, groups, n)."""
        sources, heads, _, n = seated.shape
        return self._seats.unfold(seated.reshape(sources, heads, self._seats.places, -1, n).transpose(1, 2))

    def select(self, rows: Tensor) -> None:
        """Row i becomes what row `rows[i]` was; sources that no row reads any more are dropped."""
        select_rows(self._new, rows)
        self._seats, kept = self._seats.select(rows)
        if len(kept) < self._keys.shape[1]:
            for place, source in enumerate(kept):
                if place != source:
                    for buffer in (self._keys, self._values):
                        buffer[:, place] = buffer[:, source]
                    self._bias[place] = self._bias[source]
            self._keys, self._values = self._keys[:, : len(kept)], self._values[:, : len(kept)]
            self._bias = self._bias[: len(kept)]
