"""Robust aggregation: rules that see all updates of a round as one matrix, to tolerate faulty ones.

A rule compares parameters, so it applies only to algorithms whose clients send an adapter alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Context, ServerState, ServerUpdate, Update
from pipeline.model.adapter import Adapter

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(updates (clients, parameters), server (parameters,), examples (clients,)) -> the next server; in float64."""


def aggregating(rule: Rule) -> ServerUpdate:
    """The server's part of a round, by a rule over parameters."""

    def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        answered = list(updates)
        check_parameters(state.adapter, answered)
        rows = torch.stack([flatten(update.adapter, state.adapter) for update in answered])
        examples = torch.tensor([float(update.examples) for update in answered], dtype=torch.float64)
        found = rule(rows, flatten(state.adapter, state.adapter), examples)
        return ServerState(unflatten(found, state.adapter))

    return server_update


def check_parameters(server: Adapter, updates: Sequence[Update]) -> None:
    """Check that every update is an adapter of the server's names and shapes, and nothing else.

    Raises:
        QuorumError: it is not, or there are no updates.
    """
    if not updates:
        raise QuorumError("a robust rule needs updates, and no client answered; repeat the round")
    shapes = {name: tensor.shape for name, tensor in server.items()}
    for update in updates:
        if update.memory:
            raise QuorumError(
                f"a robust rule cannot aggregate {sorted(update.memory)[0]!r}, which is no parameter; choose an "
                "algorithm whose clients send an adapter alone"
            )
        if {name: tensor.shape for name, tensor in update.adapter.items()} != shapes:
            raise QuorumError("an update has other tensors than the server's; it is of another training")


def flatten(adapter: Adapter, like: Adapter) -> Tensor:
    """The parameters of an adapter, in the order of another's sorted names: (parameters,) in float64."""
    return torch.cat([adapter[name].double().flatten() for name in sorted(like)])


def unflatten(numbers: Tensor, like: Adapter) -> Adapter:
    """The inverse of `flatten`, in the shapes and types of `like`."""
    names = sorted(like)
    parts = torch.split(numbers, [like[name].numel() for name in names])
    return {name: part.view(like[name].shape).to(like[name].dtype) for name, part in zip(names, parts, strict=True)}
