"""Checks of an update before the server aggregates it, by what can be seen from the update alone."""

import math
from collections.abc import Mapping

import torch

from pipeline.federated.aggregate import change, norm, other_form
from pipeline.federated.algorithm import Algorithm, Form, Sent
from pipeline.federated.engine import Arrival, Assignment
from pipeline.federated.figures import undeclared
from pipeline.model.adapter import Adapter


def refusal(
    arrival: Arrival, assignment: Assignment | None, job: str, algorithm: Algorithm, largest_change: float
) -> str | None:
    """Why an answer is refused, in a few words that quote only names of it; None if it is good.

    `assignment` is its client's outstanding one; `largest_change` is that of `Tolerance`.
    """
    if arrival.job != job:
        return "is of another training"
    if assignment is None:
        return "was not requested, or arrived before"
    if arrival.version != assignment.version:
        return f"is late: of round {arrival.version}"
    if not algorithm.communicates:
        return None
    update, sent = arrival.update, assignment.sent
    forms = None if algorithm.holds is None else algorithm.holds(sent)
    bounded = {name for name, form in (forms or {}).items() if form.bounds.largest < math.inf}
    return (
        undeclared(arrival.trace.figures, algorithm.declared)
        or other_form(update.adapter, sent.adapter)
        or _other_memory(update.memory, sent, forms)
        or _not_finite({**update.adapter, **update.memory})
        or _too_long(change(update.adapter, sent.adapter if algorithm.sends == "adapter" else {}), largest_change)
        or _too_long({name: update.memory[name] for name in update.memory.keys() - bounded}, largest_change)
    )


def _other_memory(memory: Adapter, sent: Sent, forms: Mapping[str, Form] | None) -> str | None:
    """How an update's memory differs from the declared forms; without them, from the same tensors of what was sent."""
    if forms is None:
        return other_form(memory, {name: like for name, like in sent.memory.items() if name in memory})
    if why := other_form(memory, {name: torch.empty(*form.shape) for name, form in forms.items()}):
        return why
    for name, (_, bounds) in forms.items():
        if not all(bounds.contain(float(extreme)) for extreme in memory[name].aminmax()):
            return f"has a number in {name} that is not between {bounds.least:g} and {bounds.largest:g}"
    return None


def _not_finite(tensors: Adapter) -> str | None:
    """Which tensor has a number that is not finite; None if there is none."""
    for name in sorted(tensors):
        # NaN propagates to both extremes; testing every number takes twenty times as long.
        extremes = tensors[name].aminmax() if tensors[name].numel() else ()
        if not all(math.isfinite(extreme) for extreme in extremes):
            return f"has a number in {name} that is not finite"
    return None


def _too_long(moved: Adapter, largest: float) -> str | None:
    """Whether the norm of a change exceeds `largest`; None if not."""
    length = norm(moved)
    return None if length <= largest else f"changes the model by {length:.3g}, over {largest:g}"
