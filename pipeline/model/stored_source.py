"""Attention of a batch's targets over their stored sources, example by example, without padding or copies.

The targets of all examples are concatenated, so that all but attention is one product for the batch. In attention each
example's queries see the stored keys and values of their source, and those of their target. A source is frozen: its
keys and values need no gradient, which saves three fifths of attention's backward pass.

With S = Q Kᵀ, P = softmax(S) and O = P V, row by row: ∂S = P ∘ (∂P − Σ ∂P ∘ P) where ∂P = ∂O Vᵀ; ∂Q = ∂S K, and for the
target's own keys and values ∂K = ∂Sᵀ Q, ∂V = Pᵀ ∂O.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Sources = Sequence[tuple[Tensor, Tensor]]
"""The stored keys and values of each example in a layer, (key-value heads, source, d) each."""


class StoredSource:
    """The stored keys and values of a batch's examples, and their numbers of targets.

    Args:
        keys, values: of each example, (layers, key-value heads, source, d).
        targets: the number of target positions of each example.
        first: the number of the first of these layers.
    """

    def __init__(self, keys: Sequence[Tensor], values: Sequence[Tensor], targets: Sequence[int], first: int) -> None:
        self._keys, self._values, self._targets, self._first = keys, values, list(targets), first

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """Causal attention of every target position over its source and its target so far: (1, Σ targets, heads, d).

        `query`: (1, heads, Σ targets, d). `key`, `value`: the targets' own, (1, key-value heads, Σ targets, d).
        """
        place = layer - self._first
        sources = [(keys[place], values[place]) for keys, values in zip(self._keys, self._values, strict=True)]
        dtype = self._keys[0].dtype
        scaled = (query[0] * scaling).to(dtype)
        attended: Tensor = _Attention.apply(scaled, key[0].to(dtype), value[0].to(dtype), sources, self._targets)  # type: ignore[no-untyped-call]
        return attended[None]


class _Attention(torch.autograd.Function):
    """Queries (heads, Σ T, d), keys and values (key-value heads, Σ T, d) -> attention's output (Σ T, heads, d)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, sources: Sources, targets: list[int]) -> Tensor:
        heads = key.shape[0]
        parts, weights = [], []
        for (far_key, far_value), q, k, v in zip(sources, *_split(heads, targets, query, key, value), strict=True):
            far, length = far_key.shape[1], k.shape[1]
            scores = torch.cat([q @ far_key.transpose(1, 2), q @ k.transpose(1, 2)], 2)
            scores[:, :, far:] += _later(length, q)
            # Softmax in fp32, as autocast does on a GPU alone; saved in the type in which the backward pass multiplies.
            weight = scores.float().softmax(-1).to(query.dtype)
            out = torch.baddbmm(weight[:, :, :far] @ far_value, weight[:, :, far:], v)
            parts.append(_unfolded(out, length))
            weights.append(weight)
        ctx.save_for_backward(query, key, value, *weights)
        ctx.sources, ctx.targets = sources, targets
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value, *weights = ctx.saved_tensors
        heads = key.shape[0]
        given = gradients[0].transpose(0, 1)
        of_query, of_key, of_value = [], [], []
        pieces = zip(ctx.sources, weights, *_split(heads, ctx.targets, query, key, value, given), strict=True)
        for (far_key, far_value), weight, q, k, v, out in pieces:
            far, length = far_key.shape[1], k.shape[1]
            of_weight = torch.cat([out @ far_value.transpose(1, 2), out @ v.transpose(1, 2)], 2)
            of_scores = torch._softmax_backward_data(of_weight, weight, -1, weight.dtype)
            near = of_scores[:, :, far:]
            of_query.append(_unfolded(torch.baddbmm(of_scores[:, :, :far] @ far_key, near, k), length))
            of_key.append(near.transpose(1, 2) @ q)
            of_value.append(weight[:, :, far:].transpose(1, 2) @ out)
        return torch.cat(of_query).transpose(0, 1), torch.cat(of_key, 1), torch.cat(of_value, 1), None, None


def _split(heads: int, targets: list[int], *tensors: Tensor) -> list[list[Tensor]]:
    """(multiple · heads, Σ T, d) -> for each example (heads, multiple · T, d), the queries of one head concatenated."""
    return [[part.reshape(heads, -1, part.shape[-1]) for part in torch.split(tensor, targets, 1)] for tensor in tensors]


def _unfolded(folded: Tensor, length: int) -> Tensor:
    """The inverse for one example, transposed: (heads, multiple · T, d) -> (T, heads · multiple, d)."""
    return folded.reshape(-1, length, folded.shape[-1]).transpose(0, 1)


def _later(length: int, like: Tensor) -> Tensor:
    """−inf where a target position would see a later one, for every query that shares a head: (multiple · T, T)."""
    later = torch.full((length, length), -torch.inf, dtype=like.dtype, device=like.device).triu(1)
    return later.repeat(like.shape[1] // length, 1)
