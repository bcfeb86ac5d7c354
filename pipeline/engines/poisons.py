"""Corrupting updates, with one function per kind; see `federated.faults.Poison`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from pipeline.federated.engine import Arrival
from pipeline.federated.faults import Poison
from pipeline.model.adapter import Adapter

Corruption = Callable[[Adapter, Adapter, float], Adapter]
"""(what a client sends, what it would send without training, strength) -> what arrives."""


def poisoned(arrival: Arrival, kind: Poison, unchanged: Adapter, strength: float) -> Arrival:
    """The same answer, corrupted."""
    if kind == "foreign":
        return replace(arrival, job=f"not {arrival.job}")
    update = arrival.update
    return replace(arrival, update=replace(update, adapter=CORRUPTIONS[kind](update.adapter, unchanged, strength)))


def _replace_number(value: float) -> Corruption:
    """Replace one number of the first tensor."""

    def corrupt(adapter: Adapter, _unchanged: Adapter, _strength: float) -> Adapter:
        first = min(adapter)
        changed = adapter[first].clone()
        changed.view(-1)[0] = value
        return {**adapter, first: changed}

    return corrupt


def _change_shape(adapter: Adapter, _unchanged: Adapter, _strength: float) -> Adapter:
    first = min(adapter)
    return {**adapter, first: torch.cat([adapter[first].flatten(), torch.zeros(1)])}


def _change_names(adapter: Adapter, _unchanged: Adapter, _strength: float) -> Adapter:
    return {f"other.{name}": tensor for name, tensor in adapter.items()}


def _reverse(adapter: Adapter, unchanged: Adapter, strength: float) -> Adapter:
    """Reverse the change, and scale it by `strength`."""
    return {name: unchanged[name] - strength * (tensor - unchanged[name]) for name, tensor in adapter.items()}


CORRUPTIONS: dict[Poison, Corruption] = {
    "nan": _replace_number(math.nan),
    "inf": _replace_number(math.inf),
    "huge": _replace_number(1e30),
    "shape": _change_shape,
    "names": _change_names,
    "reversed": _reverse,
}
