"""The server's half of a round, and the figures that it adds to those of the algorithm."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.figures import Figures
from pipeline.model.adapter import Adapter

UPDATE_NORM = "update_norm"
"""‖w⁺ − w‖, the Euclidean norm of the change of the server's adapter in a round, over all tensors."""
CLIENT_COSINE = "client_cosine"
"""The mean cosine between the changes of two clients, over all pairs of clients in a round."""


def aggregate(
    algorithm: Algorithm, state: ServerState, updates: Iterable[Update], context: Context
) -> tuple[ServerState, Figures]:
    """The server's next state, and the round's figures: the algorithm's own, `UPDATE_NORM` and `CLIENT_COSINE`.

    An algorithm whose clients send nothing has only its own figures. All updates are read, also if the algorithm reads
    none, because clients train when their updates are read.

    Raises QuorumError if the algorithm returns tensors of other names, shapes or types than the server has.
    """
    cosine = MeanCosine(state.adapter if algorithm.sends == "adapter" else {})
    arriving = cosine.watch(updates) if algorithm.communicates else iter(updates)
    renewed = algorithm.server_update(state, arriving, context)
    deque(arriving, maxlen=0)
    if why := other_form(renewed.adapter, state.adapter):
        where = algorithm.server_update.__module__
        raise QuorumError(f"{where}: what server_update returns {why}; return the tensors that it was given")
    figures = dict(renewed.figures)
    if algorithm.communicates:
        figures[UPDATE_NORM] = norm(change(renewed.adapter, state.adapter))
        if (mean := cosine.value()) is not None:
            figures[CLIENT_COSINE] = mean
    return replace(renewed, figures={}), figures


class MeanCosine:
    """The mean cosine between the changes Δ_i of n clients, with the memory for one of them.

    For u_i = Δ_i / ‖Δ_i‖, the cosines of all ordered pairs sum to ‖Σ u_i‖² − n, which is divided by n (n − 1). A client
    whose change is 0 has no direction and does not count.

    `start`: the adapter that clients began with; empty if they send changes.
    """

    def __init__(self, start: Adapter) -> None:
        self._start, self._count = start, 0
        self._sums: dict[str, Tensor] = {}

    def watch(self, updates: Iterable[Update]) -> Iterator[Update]:
        for update in updates:
            moved = change(update.adapter, self._start)
            if length := norm(moved):
                self._count += 1
                for name, tensor in moved.items():
                    if name not in self._sums:
                        self._sums[name] = torch.zeros_like(tensor)
                    self._sums[name].add_(tensor, alpha=1 / length)
            yield update

    def value(self) -> float | None:
        """The mean cosine, in [-1, 1]; None for fewer than two clients."""
        if self._count < 2:
            return None
        return (norm(self._sums) ** 2 - self._count) / (self._count * (self._count - 1))


def change(adapter: Adapter, start: Adapter) -> Adapter:
    """Each tensor minus the tensor of the same name in `start`, if there is one."""
    return {name: tensor - start[name] if name in start else tensor for name, tensor in adapter.items()}


def norm(tensors: Mapping[str, Tensor]) -> float:
    """The Euclidean norm over all tensors, in float64, where the square of 1e30 is finite."""
    return math.hypot(*(float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) for tensor in tensors.values()))


def other_form(adapter: Adapter, like: Adapter) -> str | None:
    """How names, shapes or types of tensors differ from those of `like`; None if they do not."""
    if adapter.keys() != like.keys():
        missing, unknown = sorted(like.keys() - adapter.keys()), sorted(adapter.keys() - like.keys())
        return f"lacks tensor {missing[0]}" if missing else f"has unknown tensors ({len(unknown)})"
    for name in sorted(like):
        ours, theirs = like[name], adapter[name]
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"has {name} as {_form(theirs)}, not {_form(ours)}"
    return None


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {'x'.join(map(str, tensor.shape)) or 'number'}"
