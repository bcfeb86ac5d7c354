"""The network that scores a document's units: a small transformer over their stored vectors, trained from scratch.

It has the shape of BERTSUM's (Liu and Lapata, "Text Summarization with Pretrained Encoders", EMNLP 2019): two pre-norm
layers, a norm, and one logit a unit. θ are the layers and the norm, ω is the last layer. Vectors of MiniLM have norms
of about 3.7, a sinusoid one of 14: so they are scaled by 5.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import LayerNorm, TransformerEncoder, TransformerEncoderLayer
from torch.nn.functional import gelu

from pipeline.model.adapter import Adapter
from pipeline.model.backbone import pad
from pipeline.tasks.heads import applied

LAYERS, HEADS, INNER, SCALE = 2, 8, 1024, 5.0
OUT, BODY = "head.out", "head.body."  # the names of ω, and before those of θ


@cache
def _body(width: int) -> TransformerEncoder:
    """The layers of θ without its numbers. It stays in training, whose path is the one for all widths and masks."""
    with torch.device("meta"):
        layer = TransformerEncoderLayer(width, HEADS, INNER, 0.0, gelu, batch_first=True, norm_first=True)
        return TransformerEncoder(layer, LAYERS, LayerNorm(width), enable_nested_tensor=False)


def initial_extractor(width: int, seed: int) -> Adapter:
    """Matrices by Xavier's uniform law, those of q, k and v apart; biases 0, norms 1. `width`: of units and layers."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {f"{BODY}{name}": like.shape for name, like in _body(width).named_parameters()}
    adapter: Adapter = {}
    for name, shape in (shapes | {f"{OUT}.weight": (1, width), f"{OUT}.bias": (1,)}).items():
        adapter[name] = torch.full(shape, float("norm" in name and name.endswith("weight")))
        if len(shape) == 2:
            for part in adapter[name].chunk(3) if "in_proj" in name else [adapter[name]]:
                torch.nn.init.xavier_uniform_(part, generator=generator)
    return adapter


def unit_states(vectors: Sequence[Tensor], adapter: Mapping[str, Tensor]) -> Tensor:
    """H: the states of all documents' units in a row, (Σ units, width); `vectors`: each document's, (units, width)."""
    hidden, mask = pad(vectors)
    hidden = SCALE * hidden + sinusoid(*hidden.shape[1:]).to(hidden.device)
    own = {name.removeprefix(BODY): tensor for name, tensor in adapter.items() if name.startswith(BODY)}
    padding = None if bool(mask.all()) else ~mask
    states: Tensor = functional_call(_body(hidden.shape[2]), own, (hidden,), {"src_key_padding_mask": padding})
    return states[mask]


def unit_logits(states: Tensor, adapter: Mapping[str, Tensor]) -> Tensor:
    """(0, ω · H + b): two classes, so that their softmax is the sigmoid. (units, width) -> (units, 2)."""
    logit = applied(adapter, OUT, states)
    return torch.cat([torch.zeros_like(logit), logit], 1)


def sinusoid(length: int, width: int) -> Tensor:
    """Vaswani et al., 2017: sin and cos of s / 10000^(2i / width) at even and odd places; s from 0. (length, width)."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
