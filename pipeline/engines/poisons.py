"""Updates made bad, one function a kind; see `federated.faults.Poison`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from pipeline.federated.engine import Arrival
from pipeline.federated.faults import Poison
from pipeline.model.adapter import Adapter

Spoil = Callable[[Adapter, Adapter, float], Adapter]
"""(what a client sends, what it would send had it changed nothing, strength) -> what arrives."""


def poisoned(arrival: Arrival, kind: Poison, unchanged: Adapter, strength: float) -> Arrival:
    """The same answer, made bad."""
    if kind == "foreign":
        return replace(arrival, job=f"not {arrival.job}")
    update = arrival.update
    return replace(arrival, update=replace(update, adapter=SPOILS[kind](update.adapter, unchanged, strength)))


def _with_number(value: float) -> Spoil:
    """One number of the first tensor is this one."""

    def spoil(adapter: Adapter, _unchanged: Adapter, _strength: float) -> Adapter:
        first = min(adapter)
        changed = adapter[first].clone()
        changed.view(-1)[0] = value
        return {**adapter, first: changed}

    return spoil


def _of_other_shape(adapter: Adapter, _unchanged: Adapter, _strength: float) -> Adapter:
    first = min(adapter)
    return {**adapter, first: torch.cat([adapter[first].flatten(), torch.zeros(1)])}


def _of_other_names(adapter: Adapter, _unchanged: Adapter, _strength: float) -> Adapter:
    return {f"other.{name}": tensor for name, tensor in adapter.items()}


def _reversed(adapter: Adapter, unchanged: Adapter, strength: float) -> Adapter:
    """From where the round began, the other way, and farther."""
    return {name: unchanged[name] - strength * (tensor - unchanged[name]) for name, tensor in adapter.items()}


SPOILS: dict[Poison, Spoil] = {
    "nan": _with_number(math.nan),
    "inf": _with_number(math.inf),
    "huge": _with_number(1e30),
    "shape": _of_other_shape,
    "names": _of_other_names,
    "reversed": _reversed,
}
