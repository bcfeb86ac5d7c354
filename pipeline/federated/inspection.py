"""Whether a client's answer may go into an aggregate: what is wrong with it can be seen from the answer alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pipeline.federated.algorithm import Travels
from pipeline.federated.engine import Arrival, Asked
from pipeline.model.adapter import Adapter


def refusal(arrival: Arrival, asked: Asked | None, job: str, travels: Travels, largest_change: float) -> str | None:
    """Why an answer is refused, in a few words that quote nothing of it but names; None where it is good.

    Args:
        asked: what its client was last asked and has not answered yet, if there is anything.
        job: the training's name.
        travels: whether clients send their adapter, its change, or nothing.
        largest_change: see `Tolerance`.
    """
    if arrival.job != job:
        return "is of another training"
    if asked is None:
        return "was not asked for, or has come before"
    if arrival.version != asked.version:
        return f"is late: of round {arrival.version}"
    if travels == "nothing":
        return None
    update = arrival.update
    return (
        other_form(update.adapter, asked.sent.adapter)
        or other_form(update.memory, {n: like for n, like in asked.sent.memory.items() if n in update.memory})
        or not_finite({**update.adapter, **update.memory})
        or too_far(update.adapter, asked.sent.adapter if travels == "adapter" else {}, largest_change)
        or too_far(update.memory, {}, largest_change)
    )


def other_form(adapter: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> str | None:
    """What of the names, shapes or types differs."""
    if adapter.keys() != like.keys():
        missing, strange = sorted(like.keys() - adapter.keys()), sorted(adapter.keys() - like.keys())
        return f"lacks tensor {missing[0]}" if missing else f"has {len(strange)} tensors that nobody asked for"
    for name in sorted(like):
        ours, theirs = like[name], adapter[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"has {name} as {_form(theirs)}, not {_form(ours)}"
    return None


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    for name in sorted(tensors):
        # One that is not a number makes both ends so; to ask each number takes twenty times as long.
        ends = tensors[name].aminmax() if tensors[name].numel() else ()
        if not all(math.isfinite(end) for end in ends):
            return f"has a number in {name} that is not finite"
    return None


def too_far(adapter: Adapter, start: Adapter, largest: float) -> str | None:
    """Whether the change is longer than any training's; squared in float64, where the square of 1e30 is a number."""
    changes = (tensor - start[name] if name in start else tensor for name, tensor in adapter.items())
    length = math.hypot(*(float(torch.linalg.vector_norm(change, dtype=torch.float64)) for change in changes))
    return None if length <= largest else f"changes the model by {length:.3g}, over {largest:g}"


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {'x'.join(map(str, tensor.shape)) or 'number'}"
