"""Cross-attention while rows are decoded: each source is read once, however many rows read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer

from pipeline.model.shared_source import Seats

MASK = "attention_mask"
"""What most decoders call the mask of their attention."""


class SourceLayer(DynamicLayer):  # type: ignore[misc]
    """A source's keys and values in one layer, laid out once as every step's products read them."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        keys, values = super().update(key_states.contiguous(), value_states.contiguous())
        return keys, values


@contextmanager
def folded_queries(attentions: Iterable[nn.Module], seats: Seats, bias: Tensor, mask: str = MASK) -> Iterator[None]:
    """Fold the rows that read one source into the queries of one batch entry, and unfold them on the way out.

    By hooks, so that any class of decoder does so.

    Args:
        bias: what is added to scores, (sources, 1, 1, longest).
        mask: what these modules call it.
    """
    bias = bias.expand(-1, 1, seats.places, -1)

    def fold(_module: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        hidden = named["hidden_states"] if "hidden_states" in named else inputs[0]
        return inputs[1:], {**named, "hidden_states": seats.fold(hidden[:, 0]), mask: bias}

    def unfold(_module: Any, _inputs: Any, output: tuple[Any, ...]) -> tuple[Any, ...]:
        return seats.unfold(output[0])[:, None], *output[1:]

    handles = []
    for attention in attentions:
        handles.append(attention.register_forward_pre_hook(fold, with_kwargs=True))
        handles.append(attention.register_forward_hook(unfold))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
