"""Attention for models whose queries share key-value heads, without copying keys and values to every query head.

transformers copies each key-value head for every query head of its group before scaled dot-product attention; with a
source of hundreds of tokens that copy costs more than the attention itself. Making the group a part of the query's
length gives the same numbers without a copy.
"""

from typing import cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from pipeline.model.shared_source import SharedSource
from pipeline.model.stored_source import StoredSource

NAME = "quorum_grouped"
FEW = 8  # at most so many queries of one head and one batch entry are computed by two products


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    shared_source: SharedSource | None = None,
    stored_source: StoredSource | None = None,
    **kwargs: object,
) -> tuple[Tensor, None]:
    """transformers' attention interface -> (batch, queries, heads, d), and no attention weights.

    Args:
        query: (batch, heads, queries, d).
        key, value: (batch, key-value heads, keys, d).
        attention_mask: (batch or 1, 1, queries, keys), boolean, true where a query sees a key, or additive; None for
            causal.
        shared_source: in decoding, the sources of the rows, whose keys they read before their own.
        stored_source: in training, the sources of a batch's targets.
    """
    scale = scaling or query.shape[-1] ** -0.5
    source = shared_source or stored_source
    if source is not None:
        return source.attend(cast(int, module.layer_idx), query, key, value, scale), None
    if _few(query) and (query.shape[2] == 1 or attention_mask is not None):
        return _by_products(query, key, value, attention_mask, scale), None
    if attention_mask is None:
        attended, _ = sdpa_attention_forward(module, query, key, value, None, scaling=scaling, **kwargs)
        return attended, None
    batch, heads, queries, d = query.shape
    groups = heads // key.shape[1]
    folded = query.reshape(batch, key.shape[1], groups * queries, d)
    mask = attention_mask[:, :, None].expand(-1, -1, groups, -1, -1).flatten(2, 3)
    attended = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
    return attended.reshape(batch, heads, queries, d).transpose(1, 2).contiguous(), None


def _few(query: Tensor) -> bool:
    """Whether torch's own kernel, written for many queries, takes two to seven times as long as two products."""
    on_cpu_in_bf16 = query.device.type == "cpu" and query.dtype == torch.bfloat16
    return on_cpu_in_bf16 and query.shape[2] <= FEW and not torch.is_grad_enabled()


def _by_products(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """The same in two products: queries (batch, heads, queries, d), a mask (batch, 1, queries, keys) -> as above."""
    batch, heads, queries, d = query.shape
    scores = (query * scaling).reshape(batch, key.shape[1], -1, d) @ key.transpose(-1, -2)
    if mask is not None:
        seen = scores.view(batch, heads, queries, -1)
        seen = seen.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else seen + mask.to(scores.dtype)
        scores = seen.view(scores.shape)
    attended = scores.float().softmax(-1).to(value.dtype) @ value
    return attended.view(batch, heads, queries, d).transpose(1, 2)


AttentionInterface.register(NAME, grouped_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
