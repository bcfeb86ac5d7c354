"""LoRA as a second kind of adapter: low-rank changes of the query and value projections.

Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022: W x + (α / r) B A x with A (r, in), B (out,
r) and B = 0 at first; here α = 2 r. The interface is that of the bottleneck: an adapter is plain tensors, whose names
show its kind. The code that trains, averages, sends or stores adapters does not depend on it.

The prefix store ends with the first adapted layer, before its adapter; LoRA therefore acts in the layers above it. As
with the bottleneck, a causal model's prompt stays unadapted.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pipeline.model.adapter import Adapter

DOWN, UP = ".lora_A", ".lora_B"
SCALE = 2.0
PROJECTIONS = ("q_proj", "v_proj", "q", "v", "query", "value", "q_lin", "v_lin")
"""The names of query and value projections in Llama, BART and LED, in T5, in BERT and in DistilBERT."""


def projections(layers: Sequence[nn.Module], indices: Iterable[int]) -> dict[str, tuple[int, int]]:
    """`layers.<index>.<path>` -> (in, out) of every query and value projection in the given layers."""
    return {
        f"layers.{index}.{path}": (int(module.in_features), int(module.out_features))
        for index in indices
        for path, module in layers[index].named_modules()
        if path.split(".")[-1] in PROJECTIONS and hasattr(module, "out_features")
    }


def init_lora(shapes: Mapping[str, tuple[int, int]], rank: int, seed: int) -> Adapter:
    """A fresh adapter: A (rank, in) uniform in ±1/√in, as in PEFT, and B (out, rank) = 0.

    `shapes`: (in, out) by name; see `projections`.
    """
    generator = torch.Generator().manual_seed(seed)
    adapter: Adapter = {}
    for name, (inner, outer) in sorted(shapes.items()):
        bound = 1 / math.sqrt(inner)
        adapter[name + DOWN] = (2 * torch.rand(rank, inner, generator=generator) - 1) * bound
        adapter[name + UP] = torch.zeros(outer, rank)
    return adapter


def is_lora(adapter: Mapping[str, Tensor]) -> bool:
    """Whether an adapter is LoRA's, by its names."""
    return any(name.endswith(DOWN) for name in adapter)


@contextmanager
def lora(layers: Sequence[nn.Module], adapter: Mapping[str, Tensor], where: Tensor | None = None) -> Iterator[None]:
    """Put an adapter's low-rank changes into a model's decoder layers; an adapter of another kind changes nothing.

    `where`: boolean (batch, length): the positions that are adapted; None adapts all.
    """
    with ExitStack() as hooks:
        for name in [name.removesuffix(DOWN) for name in adapter if name.endswith(DOWN)]:
            _, index, path = name.split(".", 2)
            change = _change(adapter[name + DOWN], adapter[name + UP], where)
            hooks.enter_context(layers[int(index)].get_submodule(path).register_forward_hook(change))
        yield


def _change(
    down: Tensor, up: Tensor, where: Tensor | None
) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    """A hook that adds a low-rank change to a projection's output."""

    def on_output(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        with torch.autocast(output.device.type, enabled=False):  # In fp32, also between frozen layers in bf16.
            change = linear(linear(inputs[0].float(), down), up) * SCALE
        changed = (output + change).to(output.dtype)
        return changed if where is None else torch.where(where[..., None], changed, output)

    return on_output
