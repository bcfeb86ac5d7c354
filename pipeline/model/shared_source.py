"""Decoding many rows that read few sources.

The beams of one example, and one example under several adapters, attend to the same keys and values. These are stored
once a source and read once a step, not once a row: `RowsBySource` makes the rows that read one source the queries of
one batch entry. Attention treats each query alone, so no row sees another.

A decoder without an encoder attends to the source and to its own words at once: the scores of both are concatenated,
row by row, under one softmax.

Keys and values of the tokens that rows have written lie in buffers with room for all that they will write.
transformers' own cache allocates and copies all of it for every token, and again when beams change places. Here a
token is written into its place, and only the rows that move are copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer

from pipeline.model.backbone import without_gaps
from pipeline.workspace.record import Json

MASK = "attention_mask"  # most decoders' name of their attention's mask


class RowsBySource:
    """The arrangement of rows by source: (sources, places), with as many places for each source.

    Where the rows are in this order already, nothing is copied. `owners`: each row's source. `sources`: their number.
    """

    def __init__(self, owners: Sequence[int], sources: int, device: torch.device) -> None:
        self.owners, self.sources = list(owners), sources
        self.places = max(Counter(owners).values())
        taken: Counter[int] = Counter()
        places = []
        for owner in owners:
            places.append(owner * self.places + taken[owner])
            taken[owner] += 1
        self._places = torch.tensor(places, device=device)
        self._in_order = places == list(range(sources * self.places))

    def fold(self, rows: Tensor) -> Tensor:
        """(rows, …) -> (sources, places, …), zero in a place without a row."""
        folded = rows
        if not self._in_order:
            folded = rows.new_zeros(self.sources * self.places, *rows.shape[1:])
            folded[self._places] = rows
        return folded.view(self.sources, self.places, *rows.shape[1:])

    def unfold(self, folded: Tensor) -> Tensor:
        """(sources, places, …) -> (rows, …)."""
        rows = folded.flatten(0, 1)
        return rows if self._in_order else rows[self._places]

    def select(self, rows: Tensor) -> tuple[RowsBySource, list[int]]:
        """The arrangement after row i becomes what row `rows[i]` was, without sources that no row reads any more; and
        the former number of each source that is left.
        """
        owners = [self.owners[row] for row in rows.tolist()]
        sources = without_gaps(sorted(set(owners)))
        place = {source: number for number, source in enumerate(sources)}
        return RowsBySource([place[owner] for owner in owners], len(sources), self._places.device), sources


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """One decoder layer's cache, (rows, heads, grown, d) each; transformers' cache layer interface.

    `room`: the number of tokens by which a row can grow.
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

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
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


class SourceLayer(DynamicLayer):  # type: ignore[misc]
    """A source's keys and values in one layer, made contiguous once: every step's products read them so."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        keys, values = super().update(key_states.contiguous(), value_states.contiguous())
        return keys, values


@contextmanager
def folded_queries(
    attentions: Iterable[nn.Module], arrangement: RowsBySource, bias: Tensor, mask: str = MASK
) -> Iterator[None]:
    """Make the rows that read one source the queries of one batch entry while decoders' cross-attention runs.

    Hooks do so, which work in any class of decoder. `bias`: added to scores, (sources, 1, 1, longest). `mask`: these
    modules' name of that argument.
    """
    bias = bias.expand(-1, 1, arrangement.places, -1)

    def fold(_module: nn.Module, inputs: tuple[Tensor, ...], named: Json) -> tuple[tuple[Tensor, ...], Json]:
        hidden = named["hidden_states"] if "hidden_states" in named else inputs[0]
        return inputs[1:], {**named, "hidden_states": arrangement.fold(hidden[:, 0]), mask: bias}

    def unfold(_module: nn.Module, _inputs: object, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return arrangement.unfold(output[0])[:, None], *output[1:]

    with ExitStack() as hooks:
        for attention in attentions:
            hooks.enter_context(attention.register_forward_pre_hook(fold, with_kwargs=True))
            hooks.enter_context(attention.register_forward_hook(unfold))
        yield


class SharedSource:
    """Keys and values of sources and of each row's new tokens; transformers' cache interface, and attention over it.

    Args:
        keys, values: of the sources, (layers, sources, key-value heads, longest, d).
        seen: boolean (sources, longest), false where a source is padded.
        owners: each row's source.
        room: the number of tokens by which a row can grow.
    """

    def __init__(self, keys: Tensor, values: Tensor, seen: Tensor, owners: Sequence[int], room: int) -> None:
        self._keys, self._values = keys, values
        self._bias = torch.zeros(seen.shape, dtype=keys.dtype, device=keys.device).masked_fill(~seen, -torch.inf)
        self._new = [GrowingLayer(room) for _ in keys]
        self._arrangement = RowsBySource(owners, keys.shape[1], keys.device)

    @property
    def grown(self) -> int:
        """The number of tokens by which each row has grown."""
        grown: int = self._new[0].get_seq_length()
        return grown

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Append a token's keys and values in a layer, (rows, key-value heads, 1, d); all that the rows have grown."""
        return self._new[layer].update(keys.to(self._keys.dtype), values.to(self._keys.dtype))

    def attend(self, layer: int, query: Tensor, keys: Tensor, values: Tensor, scaling: float) -> Tensor:
        """Attention of a new token a row: query (rows, heads, 1, d), `update`'s keys, values -> (rows, 1, heads, d)."""
        rows, heads, _, d = query.shape
        shared, longest = self._keys.shape[2:4]
        own = (query.reshape(rows, shared, heads // shared, d) * scaling).to(self._keys.dtype)
        far = self._by_source(own) @ self._keys[layer].transpose(-1, -2)
        near = self._by_source(own @ keys.transpose(-1, -2))
        scores = torch.cat([far.add_(self._bias[:, None, None]), near], -1)
        weights = scores.float().softmax(-1).to(self._values.dtype)
        of_source = self._by_row(weights[..., :longest] @ self._values[layer])
        of_own = self._by_row(weights[..., longest:]) @ values
        return (of_source + of_own).reshape(rows, 1, heads, d)

    def _by_source(self, rows: Tensor) -> Tensor:
        """(rows, key-value heads, groups, n) -> (sources, key-value heads, places x groups, n)."""
        return self._arrangement.fold(rows).transpose(1, 2).flatten(2, 3)

    def _by_row(self, folded: Tensor) -> Tensor:
        """(sources, key-value heads, places x groups, n) -> (rows, key-value heads, groups, n)."""
        sources, heads, _, n = folded.shape
        places = self._arrangement.places
        return self._arrangement.unfold(folded.reshape(sources, heads, places, -1, n).transpose(1, 2))

    def select(self, rows: Tensor) -> None:
        """Row i becomes what row `rows[i]` was; sources that no row reads any more are dropped."""
        select_rows(self._new, rows)
        self._arrangement, sources = self._arrangement.select(rows)
        if len(sources) < self._keys.shape[1]:
            for place, source in enumerate(sources):
                if place != source:
                    for buffer in (self._keys, self._values):
                        buffer[:, place] = buffer[:, source]
                    self._bias[place] = self._bias[source]
            self._keys, self._values = self._keys[:, : len(sources)], self._values[:, : len(sources)]
            self._bias = self._bias[: len(sources)]
