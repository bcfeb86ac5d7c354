"""Frozen linear layers, in one precision and, on a processor, in oneDNN's packed layout.

Packed for oneDNN, a product in fp32 has the same numbers but for the order of summation and takes half the time; in
bf16 half of that.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from pipeline.model.onednn import linear, packed, serves
from pipeline.model.precision import Precision

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CANDIDATES, BLOCK = 16, 64
"""The number of a row's logits that are computed in fp32; they are in the blocks of words with the largest maxima."""
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


def freeze_linear_layers(model: PreTrainedModel, precision: Precision) -> None:
    """Replace every `nn.Linear` of a frozen fp32 language model by one in this precision; on a CPU, a packed one."""
    if precision == "bf16" and type(getattr(model, "lm_head", None)) is nn.Linear:
        model.lm_head = Vocabulary(model.lm_head, model.get_input_embeddings().weight)
    holders = Counter(id(weight) for module in model.modules() for weight in module.parameters(recurse=False))
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and layer.weight.dtype == torch.float32:
                frozen = _frozen(layer, precision, shared=holders[id(layer.weight)] > 1)
                setattr(parent, name, frozen)
    # The other tensors are views of one mapped file: while any of them is, the file counts as this process's memory.
    for tensor in [*model.parameters(), *model.buffers()]:
        if tensor.device.type == "cpu" and 0 not in tensor.stride():
            tensor.data = tensor.data.clone()


def _frozen(layer: nn.Linear, precision: Precision, *, shared: bool = False) -> nn.Module:
    """A linear layer in a precision: packed where oneDNN computes, else an `nn.Linear`."""
    if serves(layer.weight):
        return PackedLinear(layer, precision, shared=shared)
    if precision == "fp32":
        return layer
    plain = nn.Linear(layer.in_features, layer.out_features, bias=False, device="meta")
    plain.weight = nn.Parameter(layer.weight.to(DTYPES[precision]), requires_grad=False)
    plain.bias = None if layer.bias is None else nn.Parameter(layer.bias.to(DTYPES[precision]), requires_grad=False)
    return plain


class PackedLinear(nn.Module):
    """x Wᵀ + b with constant W (out, in) and b; gradients reach x alone.

    `weight` is a real tensor only where an embedding shares it. Otherwise the packed copy is the only one, and
    `weight` a placeholder of the same shape and type, which models read.
    """

    def __init__(self, layer: nn.Linear, precision: Precision = "fp32", *, shared: bool = False) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self._dtype = DTYPES[precision]
        self.bias = None if layer.bias is None else layer.bias.to(self._dtype)
        self._forward = packed(layer.weight.to(self._dtype))
        holder = layer.weight.new_zeros(()).expand(layer.weight.shape)
        self.weight = layer.weight if shared else nn.Parameter(holder, requires_grad=False)
        self._backward: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        inputs = inputs.to(self._dtype)
        if not (inputs.requires_grad and torch.is_grad_enabled()):
            return self.product(inputs)
        product: Tensor = _Product.apply(inputs, self)  # type: ignore[no-untyped-call]
        return product

    def product(self, inputs: Tensor) -> Tensor:
        """x Wᵀ + b without a gradient: (..., in) -> (..., out)."""
        return linear(inputs, self._forward, self.bias)

    def pulled_back(self, gradient: Tensor) -> Tensor:
        """∂/∂x = gradient · W: (..., out) -> (..., in). W is packed for it at the first call, which few layers have."""
        if self._backward is None:
            self._backward = packed(self._forward.to_dense().t().contiguous())
        return linear(gradient, self._backward)


def logits_of(layer: nn.Module, hidden: Tensor, targets: Tensor | None) -> Tensor:
    """A language model's logits in fp32, (items, width) -> (items, vocabulary); `targets`: see `Vocabulary`."""
    logits: Tensor = layer(hidden, targets) if isinstance(layer, Vocabulary) else layer(hidden)
    return logits.float()


class Vocabulary(nn.Module):
    """Hidden states -> fp32 logits of every word, by a frozen layer in bf16.

    bf16 rounds a logit of 20 to steps of 1/8, which would distort every probability. Softmax does not depend on a
    constant, so the target's logit is subtracted from its row inside the product, whose sums are fp32: the rounded
    numbers are then small where the probability is large. For this W has one more column, of ones, and x the negative
    of that logit. Without a target, the largest logits of a row, among which a decoder chooses, are computed in fp32.
    """

    def __init__(self, layer: nn.Linear, embedding: Tensor) -> None:
        super().__init__()
        tied = layer.weight is embedding
        self.weight = embedding if tied else nn.Parameter(layer.weight.to(torch.bfloat16), requires_grad=False)
        weight = pad(layer.weight.to(torch.bfloat16), (0, 1), value=1.0)
        wider = nn.Linear(layer.in_features + 1, layer.out_features, bias=False, device="meta")
        wider.weight = nn.Parameter(weight, requires_grad=False)
        self._linear = _frozen(wider, "bf16")
        self.bias = layer.bias

    def forward(self, hidden: Tensor, targets: Tensor | None = None) -> Tensor:
        """States (items, width) -> logits (items, vocabulary); given targets (items,), less the target's logit."""
        states = hidden.to(torch.bfloat16)
        offset = states.new_zeros(states.shape[:-1])
        if targets is not None:
            own = self.weight[targets].to(torch.bfloat16)
            offset = -(states.detach().float() * own.float()).sum(-1).to(torch.bfloat16)
        logits: Tensor = self._linear(torch.cat([states, offset[..., None]], -1)).float()
        if targets is None:
            _refine_largest(logits, states, self.weight)
        return logits if self.bias is None else logits + self.bias


def _refine_largest(logits: Tensor, states: Tensor, weight: Tensor) -> None:
    """Replace the largest logits of each row, in place, by products of the same numbers in fp32.

    They are searched in the blocks with the largest maxima: searching the full vocabulary takes longer than the rest.
    """
    size = BLOCK if logits.shape[-1] % BLOCK == 0 else logits.shape[-1]
    blocks = logits.view(*logits.shape[:-1], -1, size)
    best = blocks.amax(-1).topk(min(CANDIDATES, blocks.shape[-2]), -1).indices
    words = (best[..., None] * size + torch.arange(size, device=logits.device)).flatten(-2)
    words = words.gather(-1, logits.gather(-1, words).topk(min(CANDIDATES, words.shape[-1]), -1).indices)
    exact = weight[words].to(torch.bfloat16).float() @ states.float()[..., None]
    logits.scatter_(-1, words, exact[..., 0])


class _Product(torch.autograd.Function):
    """`PackedLinear.product` with its gradient in x."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layer: PackedLinear) -> Tensor:
        ctx.layer = layer
        return layer.product(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.layer.pulled_back(gradients[0]), None
