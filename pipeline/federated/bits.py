"""Boolean rows as bits, eight to a byte: which tokens were distilled, kept compactly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def pack_bits(rows: Sequence[Tensor]) -> Tensor:
    """Boolean rows of equal length -> uint8 (rows, ⌈length / 8⌉), most significant bit first."""
    if not rows:
        return torch.zeros(0, 0, dtype=torch.uint8)
    bits = torch.cat(list(rows)).to(torch.uint8)
    padded = torch.nn.functional.pad(bits, (0, -bits.shape[1] % 8)).view(bits.shape[0], -1, 8)
    return (padded * torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8)).sum(-1, dtype=torch.uint8)


def unpack_bits(packed: Tensor, length: int) -> Tensor:
    """The inverse of `pack_bits`: boolean (rows, length)."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8)
    return (packed[:, :, None].bitwise_right_shift(shifts) & 1).flatten(1)[:, :length].bool()
