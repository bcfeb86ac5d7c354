"""Corrupting updates, with one function per kind; see `federated.faults.Poison`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from pipeline.federated.engine import Arrival
from pipeline.federated.faults import Poison
from pipeline.model.adapter import Adapter

Corruption = Callable[[Adapter], Adapter]
"""What a client sends -> what arrives."""


def poisoned(arrival: Arrival, kind: Poison, origin: Adapter, strength: float) -> Arrival:
    """The same answer, corrupted.

    Args:
        arrival: the answer.
        kind: how it is corrupted.
        origin: the adapter that the client was sent; empty if it sends a change.
        strength: the length of a reversed change, in lengths of the client's own.
    """
    if kind == "foreign":
        return replace(arrival, job=f"not {arrival.job}")
    adapter = arrival.update.adapter
    found = _reversed(adapter, origin, strength) if kind == "reversed" else CORRUPTIONS[kind](adapter)
    return replace(arrival, update=replace(arrival.update, adapter=found))


def _reversed(adapter: Adapter, origin: Adapter, strength: float) -> Adapter:
    """The change in the other direction, and `strength` times as long."""
    start = origin or {name: torch.zeros_like(tensor) for name, tensor in adapter.items()}
    return {name: start[name] - strength * (tensor - start[name]) for name, tensor in adapter.items()}


def _with_number(value: float) -> Corruption:
    """Replace one number of the first tensor."""

    def corrupt(adapter: Adapter) -> Adapter:
        first = min(adapter)
        changed = adapter[first].clone()
        changed.view(-1)[0] = value
        return {**adapter, first: changed}

    return corrupt


def _with_shape(adapter: Adapter) -> Adapter:
    first = min(adapter)
    return {**adapter, first: torch.cat([adapter[first].flatten(), torch.zeros(1)])}


CORRUPTIONS: dict[Poison, Corruption] = {
    "nan": _with_number(math.nan),
    "inf": _with_number(math.inf),
    "huge": _with_number(1e30),
    "shape": _with_shape,
    "names": lambda adapter: {f"other.{name}": tensor for name, tensor in adapter.items()},
}
