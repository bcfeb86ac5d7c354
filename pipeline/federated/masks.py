"""Masks over target tokens, as a training leaves them: a bit a token, by client, name and round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

Masks = Mapping[str, Mapping[str, Mapping[int, Tensor]]]
"""Client -> name -> round -> boolean (local epochs, tokens)."""


def flat(masks: Masks) -> dict[str, Tensor]:
    """By `client/name/round`, as a file of tensors has them."""
    return {
        f"{client}/{name}/{number}": rows
        for client, named in masks.items()
        for name, rounds in named.items()
        for number, rows in rounds.items()
    }


def nested(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, dict[int, Tensor]]]:
    """The inverse of `flat`."""
    masks: dict[str, dict[str, dict[int, Tensor]]] = {}
    for key, rows in tensors.items():
        client, name, number = key.split("/")
        masks.setdefault(client, {}).setdefault(name, {})[int(number)] = rows
    return masks


def packed(masks: Masks) -> dict[str, Tensor]:
    """`client/name/round` -> uint8 (local epochs, ⌈tokens / 8⌉), most significant bit first."""
    return {key: torch.from_numpy(np.packbits(rows.numpy(), axis=1)) for key, rows in flat(masks).items()}


def unpacked(tensors: Mapping[str, Tensor], client: str, name: str, tokens: int) -> dict[int, Tensor]:
    """Round -> boolean (local epochs, tokens), of the rounds in which the client has the mask."""
    return {
        number: torch.from_numpy(np.unpackbits(rows.numpy(), axis=1, count=tokens)).bool()
        for number, rows in nested(tensors).get(client, {}).get(name, {}).items()
    }
