"""Matrix products by oneDNN's kernels, which use wider vector instructions than MKL's on some processors.

A weight that never changes can be stored once in the blocks in which these kernels read it (`packed`). A plain product
re-arranges it on every call: with the 49,152 words of the embedded backbone and 128 positions that is half of the time.
"""

from typing import Protocol

import torch
from torch import Tensor


def serves(tensor: Tensor) -> bool:
    """Whether a tensor is in the memory of a processor, and torch was built with these kernels."""
    return tensor.device.type == "cpu" and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def packed(weight: Tensor) -> Tensor:
    """A weight (out, in) in the layout that `linear` reads fastest; its `to_dense` is the weight."""
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    return found


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b without a gradient: (..., in), (out, in) packed or plain -> (..., out)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product


def product(inputs: Tensor, weight: Tensor) -> Tensor:
    """x W for a weight that trains, with its gradients: (..., in), (in, out) -> (..., out)."""
    if torch.compiler.is_compiling() or not serves(inputs):
        return inputs @ weight
    found: Tensor = _Product.apply(inputs, weight)  # type: ignore[no-untyped-call]
    return found


class SavedTensors(Protocol):
    """What autograd hands from a function's forward pass to its backward pass."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class _Product(torch.autograd.Function):
    """x W with gradients in both."""

    @staticmethod
    def forward(ctx: SavedTensors, inputs: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return linear(inputs, weight.t())

    @staticmethod
    def backward(ctx: SavedTensors, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:  # type: ignore[override]
        inputs, weight = ctx.saved_tensors
        of_inputs = linear(gradient, weight) if ctx.needs_input_grad[0] else None
        rows, columns = inputs.flatten(0, -2), gradient.flatten(0, -2)
        return of_inputs, linear(rows.t(), columns.t()) if ctx.needs_input_grad[1] else None
