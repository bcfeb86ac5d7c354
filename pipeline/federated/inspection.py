"""Checks of an update before the server aggregates it, by what can be seen from the update alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from pipeline.federated.aggregate import change, norm
from pipeline.federated.algorithm import ClientSends
from pipeline.federated.engine import Arrival, Assignment
from pipeline.federated.figures import Declared, undeclared
from pipeline.model.adapter import Adapter


def refusal(
    arrival: Arrival,
    assignment: Assignment | None,
    job: str,
    sends: ClientSends,
    largest_change: float,
    declared: Declared,
) -> str | None:
    """Why an answer is refused, in a few words that quote only names of it; None if it is good.

    Args:
        arrival: the answer.
        assignment: its client's outstanding assignment, if there is one.
        job: the training's name.
        sends: what clients send.
        largest_change: see `Tolerance`.
        declared: the figures that the algorithm and its objective declare.
    """
    if arrival.job != job:
        return "is of another training"
    if assignment is None:
        return "was not requested, or arrived before"
    if arrival.version != assignment.version:
        return f"is late: of round {arrival.version}"
    if sends == "nothing":
        return None
    update, sent = arrival.update, assignment.sent
    return (
        undeclared(arrival.report.figures, declared)
        or form_mismatch(update.adapter, sent.adapter)
        or form_mismatch(update.memory, {n: like for n, like in sent.memory.items() if n in update.memory})
        or non_finite({**update.adapter, **update.memory})
        or excessive_change(update.adapter, sent.adapter if sends == "adapter" else {}, largest_change)
        or excessive_change(update.memory, {}, largest_change)
    )


def form_mismatch(adapter: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> str | None:
    """How names, shapes or types of tensors differ from those of `like`; None if they do not."""
    if adapter.keys() != like.keys():
        missing, unknown = sorted(like.keys() - adapter.keys()), sorted(adapter.keys() - like.keys())
        return f"lacks tensor {missing[0]}" if missing else f"has unknown tensors ({len(unknown)})"
    for name in sorted(like):
        ours, theirs = like[name], adapter[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"has {name} as {_form(theirs)}, not {_form(ours)}"
    return None


def non_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Which tensor has a number that is not finite; None if there is none."""
    for name in sorted(tensors):
        # NaN propagates to both extremes; testing every number takes twenty times as long.
        extremes = tensors[name].aminmax() if tensors[name].numel() else ()
        if not all(math.isfinite(extreme) for extreme in extremes):
            return f"has a number in {name} that is not finite"
    return None


def excessive_change(adapter: Adapter, start: Adapter, largest: float) -> str | None:
    """Whether ‖adapter − start‖ exceeds `largest`; None if not."""
    length = norm(change(adapter, start))
    return None if length <= largest else f"changes the model by {length:.3g}, over {largest:g}"


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {'x'.join(map(str, tensor.shape)) or 'number'}"
