"""Linear layers above an encoder, whose tensors are part of the adapter."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import linear

from pipeline.model.adapter import INITIAL_STD, Adapter


def initial_linears(shapes: Mapping[str, tuple[int, int]], seed: int) -> Adapter:
    """W (out, in) ~ N(0, 0.02²) and b (out,) = 0 of each layer.

    `shapes`: name -> (in, out), in the order of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    adapter: Adapter = {}
    for name, (inner, outer) in shapes.items():
        adapter[f"{name}.weight"] = torch.randn(outer, inner, generator=generator) * INITIAL_STD
        adapter[f"{name}.bias"] = torch.zeros(outer)
    return adapter


def applied(adapter: Mapping[str, Tensor], name: str, hidden: Tensor) -> Tensor:
    """W x + b by an adapter's layer: (..., in) -> (..., out)."""
    return linear(hidden, adapter[f"{name}.weight"], adapter[f"{name}.bias"])
