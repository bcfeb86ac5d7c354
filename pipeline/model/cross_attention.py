"""Cross-attention while rows are decoded: each source is read once, however many rows read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer

from pipeline.model.shared_source import RowsBySource
from pipeline.workspace.record import Json

MASK = "attention_mask"
"""Most decoders' name of their attention's mask."""


class SourceLayer(DynamicLayer):  # type: ignore[misc]
    """A source's keys and values in one layer, made contiguous once: every step's products read them so."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        keys, values = super().update(key_states.contiguous(), value_states.contiguous())
        return keys, values


@contextmanager
def folded_queries(
    attentions: Iterable[nn.Module], arrangement: RowsBySource, bias: Tensor, mask: str = MASK
) -> Iterator[None]:
    """Make the rows that read one source the queries of one batch entry while decoders' cross-attention runs.

    Hooks do so, which work in any class of decoder.

    Args:
        bias: added to scores, (sources, 1, 1, longest).
        mask: these modules' name of that argument.
    """
    bias = bias.expand(-1, 1, arrangement.places, -1)

    def fold(_module: Any, inputs: tuple[Any, ...], named: Json) -> tuple[tuple[Any, ...], Any]:
        hidden = named["hidden_states"] if "hidden_states" in named else inputs[0]
        return inputs[1:], {**named, "hidden_states": arrangement.fold(hidden[:, 0]), mask: bias}

    def unfold(_module: Any, _inputs: Any, output: tuple[Any, ...]) -> tuple[Any, ...]:
        return arrangement.unfold(output[0])[:, None], *output[1:]

    with ExitStack() as hooks:
        for attention in attentions:
            hooks.callback(attention.register_forward_pre_hook(fold, with_kwargs=True).remove)
            hooks.callback(attention.register_forward_hook(unfold).remove)
        yield
