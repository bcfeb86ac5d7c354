"""Frozen linear layers with their weights laid out for the processor.

A weight that never changes can be stored once in the blocks in which oneDNN's kernels read it, where a plain product
re-arranges it on every call. With the 49,152 words of the embedded backbone and 128 positions that, and oneDNN's use of
the wider vector instructions that MKL leaves alone on some processors, makes the product twice as fast. Same fp32
numbers but for the order of summation.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn


def pack_linear_layers(model: nn.Module) -> None:
    """Replace every `nn.Linear` of a frozen fp32 model on a CPU by its packed form; other models stay as they are."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return
    holders = Counter(id(weight) for module in model.modules() for weight in module.parameters(recurse=False))
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32:
                setattr(parent, name, PackedLinear(layer, shared=holders[id(layer.weight)] > 1))
    # What is left lies in one mapped file: as long as any of it does, all of the file counts as this process's memory.
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.device.type == "cpu" and 0 not in tensor.stride():
            tensor.data = tensor.data.clone()


class PackedLinear(nn.Module):
    """x Wᵀ + b with constant W (out, in) and b; gradients reach x alone.

    `weight` stays beside its packed copy only where an embedding shares it; elsewhere it is a place holder of its shape
    and type, which models ask for, and the packed copy is the only one.
    """

    def __init__(self, layer: nn.Linear, *, shared: bool = False) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.bias = layer.bias
        self._forward = _packed(layer.weight)
        holder = layer.weight.new_zeros(()).expand(layer.weight.shape)
        self.weight = layer.weight if shared else nn.Parameter(holder, requires_grad=False)
        self._backward: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        product: Tensor = _Product.apply(inputs, self)  # type: ignore[no-untyped-call]
        return product

    def product(self, inputs: Tensor) -> Tensor:
        return _product(inputs, self._forward, self.bias)

    def pulled_back(self, gradient: Tensor) -> Tensor:
        """∂/∂x: gradient · W. Packed at the first call: most layers of a frozen model never see a gradient."""
        if self._backward is None:
            self._backward = _packed(self._forward.to_dense().t().contiguous())
        return _product(gradient, self._backward, None)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layer: PackedLinear) -> Tensor:
        ctx.layer = layer
        return layer.product(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.layer.pulled_back(gradients[0]), None


def _packed(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    return packed


def _product(inputs: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, packed, bias, "none", [], "")
    return product
