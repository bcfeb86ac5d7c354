"""LoRA as a second kind of adapter: low-rank changes of the query and value projections, by PEFT's layers.

Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022: W x + (α / r) B A x with A (r, in), B (out,
r) and B = 0 at first; here α = 2 r. The interface is that of the bottleneck: an adapter is plain tensors, whose names
show its kind. The code that trains, averages, sends or stores adapters does not depend on it.

The prefix store ends with the first adapted layer, before its adapter; LoRA therefore acts in the layers above it. As
with the bottleneck, a causal model's prompt stays unadapted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

from pipeline.model.adapter import Adapter

DOWN, UP = ".lora_A", ".lora_B"
SCALE = 2.0
PROJECTIONS = ("q_proj", "v_proj", "q", "v")
"""The names of query and value projections in Llama, BART and LED, and in T5."""

_layers_by_base: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()


def projections(layers: Sequence[nn.Module], indices: Iterable[int]) -> dict[str, tuple[int, int]]:
    """`layers.<index>.<path>` -> (in, out) of every query and value projection in the given decoder layers."""
    found = {}
    for index in indices:
        for path, module in layers[index].named_modules():
            if path.split(".")[-1] in PROJECTIONS and hasattr(module, "out_features"):
                found[f"layers.{index}.{path}"] = (int(module.in_features), int(module.out_features))
    return found


def init_lora(shapes: Mapping[str, tuple[int, int]], rank: int, seed: int) -> Adapter:
    """A fresh adapter: A (rank, in) uniform in ±1/√in, as in PEFT, and B (out, rank) = 0.

    Args:
        shapes: (in, out) by name; see `projections`.
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

    Args:
        where: boolean (batch, length): the positions that are adapted; None adapts all.
    """
    replaced: list[tuple[nn.Module, str, nn.Module]] = []
    handles = []
    try:
        for name in [name.removesuffix(DOWN) for name in adapter if name.endswith(DOWN)]:
            _, index, path = name.split(".", 2)
            parent_path, _, last = path.rpartition(".")
            parent = layers[int(index)].get_submodule(parent_path)
            base = getattr(parent, last)
            changed = _changed(base, adapter[name + DOWN], adapter[name + UP])
            if where is not None:
                handles.append(changed.register_forward_hook(_restrict(base, where)))
            setattr(parent, last, changed)
            replaced.append((parent, last, base))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for parent, last, base in replaced:
            setattr(parent, last, base)


def _changed(base: nn.Module, down: Tensor, up: Tensor) -> nn.Module:
    """PEFT's layer over a frozen projection; its weights are these tensors themselves, so gradients reach them."""
    layer = _layers_by_base.get(base)
    if layer is None or layer.r["default"] != down.shape[0]:  # type: ignore[index]
        layer = _layers_by_base[base] = _lora_layer(base, down.shape[0])
    parts: Any = layer
    parts.lora_A["default"]._parameters["weight"] = down
    parts.lora_B["default"]._parameters["weight"] = up
    return layer


def _lora_layer(base: nn.Module, rank: int) -> nn.Module:
    """PEFT's layer over a frozen projection, without weights yet."""
    from peft import LoraConfig  # seconds, which the bottleneck saves
    from peft.tuners.lora.layer import Linear

    # PEFT accepts plain linear layers alone; the frozen one, whose weights may be packed, replaces it afterwards.
    plain = nn.Linear(int(base.in_features), int(base.out_features), bias=False, device="meta")  # type: ignore[arg-type]
    config = LoraConfig(r=rank, lora_alpha=round(SCALE * rank))
    layer: nn.Module = Linear(plain, "default", config, r=rank, lora_alpha=round(SCALE * rank))
    layer.base_layer = _WeakModule(base)
    parts: Any = layer
    parts.lora_A["default"] = _LowRank(plain.in_features, rank, bias=False, device="meta")
    parts.lora_B["default"] = _LowRank(rank, plain.out_features, bias=False, device="meta")
    return layer


class _LowRank(nn.Linear):
    """An adapter's own product: in fp32, also between frozen layers in bf16."""

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.autocast(inputs.device.type, enabled=False):
            return super().forward(inputs.float())


class _WeakModule(nn.Module):
    """Calls a module by a weak reference: the layers cached here must not keep a model in memory."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._reference = ref(module)

    def forward(self, inputs: Tensor) -> Tensor:
        module = self._reference()
        assert module is not None, "the model is gone"
        output: Tensor = module(inputs)
        return output


def _restrict(base: nn.Module, where: Tensor) -> Any:
    """A hook that replaces a changed projection's output by the base's at positions where `where` is false."""

    def on_output(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return torch.where(where[..., None], output, base(inputs[0]))

    return on_output
