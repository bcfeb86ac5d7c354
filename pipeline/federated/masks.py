"""Masks over target tokens, as a training leaves them: a bit a token, by client, name and round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

Masks = Mapping[str, Mapping[str, Mapping[int, Tensor]]]
"""Client -> name -> round -> boolean (local epochs, tokens)."""


def packed(masks: Masks) -> dict[str, Tensor]:
    """`client/name/round` -> uint8 (local epochs, ⌈tokens / 8⌉), most significant bit first."""
    return {
        f"{client}/{name}/{number}": torch.from_numpy(np.packbits(rows.numpy(), axis=1))
        for client, named in masks.items()
        for name, rounds in named.items()
        for number, rows in rounds.items()
    }


def unpacked(tensors: Mapping[str, Tensor], client: str, name: str, tokens: int) -> dict[int, Tensor]:
    """Round -> boolean (local epochs, tokens), of the rounds in which the client has the mask."""
    found = {}
    for key, rows in tensors.items():
        owner, mask, number = key.split("/")
        if (owner, mask) == (client, name):
            found[int(number)] = torch.from_numpy(np.unpackbits(rows.numpy(), axis=1, count=tokens)).bool()
    return found
