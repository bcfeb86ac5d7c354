"""Masks over target tokens, and their files with one bit per token."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

Masks = dict[str, Tensor]  # `client/name/round` -> boolean (local epochs, tokens)


def pack_masks(masks: Masks) -> dict[str, Tensor]:
    """`client/name/round` -> uint8 (local epochs, ⌈tokens / 8⌉), most significant bit first."""
    return {key: torch.from_numpy(np.packbits(rows.numpy(), axis=1)) for key, rows in masks.items()}


def unpack_masks(tensors: Mapping[str, Tensor], client: str, name: str, tokens: int) -> dict[int, Tensor]:
    """Round -> boolean (local epochs, tokens), of the rounds that have this mask of the client."""
    return {
        int(key.rpartition("/")[2]): torch.from_numpy(np.unpackbits(rows.numpy(), axis=1, count=tokens)).bool()
        for key, rows in tensors.items()
        if key.startswith(f"{client}/{name}/")
    }
