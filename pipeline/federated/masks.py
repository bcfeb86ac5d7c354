"""Masks over target tokens, by client, name and round, and their files with one bit per token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

Masks = Mapping[str, Mapping[str, Mapping[int, Tensor]]]
"""Client -> name -> round -> boolean (local epochs, tokens)."""


def flat_masks(masks: Masks) -> dict[str, Tensor]:
    """`client/name/round` -> boolean (local epochs, tokens), as in a file of tensors."""
    return {
        f"{client}/{name}/{number}": rows
        for client, named in masks.items()
        for name, rounds in named.items()
        for number, rows in rounds.items()
    }


def nested_masks(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, dict[int, Tensor]]]:
    """The inverse of `flat_masks`."""
    masks: dict[str, dict[str, dict[int, Tensor]]] = {}
    for key, rows in tensors.items():
        client, name, number = key.split("/")
        masks.setdefault(client, {}).setdefault(name, {})[int(number)] = rows
    return masks


def pack_masks(masks: Masks) -> dict[str, Tensor]:
    """`client/name/round` -> uint8 (local epochs, ⌈tokens / 8⌉), most significant bit first."""
    return {key: torch.from_numpy(np.packbits(rows.numpy(), axis=1)) for key, rows in flat_masks(masks).items()}


def unpack_masks(tensors: Mapping[str, Tensor], client: str, name: str, tokens: int) -> dict[int, Tensor]:
    """Round -> boolean (local epochs, tokens), of the rounds that have this mask of the client."""
    return {
        number: torch.from_numpy(np.unpackbits(rows.numpy(), axis=1, count=tokens)).bool()
        for number, rows in nested_masks(tensors).get(client, {}).get(name, {}).items()
    }
