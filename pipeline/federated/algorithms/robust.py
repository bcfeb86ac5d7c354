"""What rules that withstand bad updates have in common: they see all updates of a round at once, as one matrix.

Such a rule compares parameters. An algorithm that sends anything besides an adapter cannot be defended by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Context, ServerState, ServerUpdate, Update
from pipeline.model.adapter import Adapter

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(updates (clients, parameters), the server's own (parameters,), examples (clients,)) -> the next; in float64."""


def aggregating(rule: Rule) -> ServerUpdate:
    """The server's half of a round by a rule over parameters."""

    def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        answered = list(updates)
        check_parameters(state.adapter, answered)
        rows = torch.stack([flat(update.adapter, state.adapter) for update in answered])
        examples = torch.tensor([float(update.examples) for update in answered], dtype=torch.float64)
        found = rule(rows, flat(state.adapter, state.adapter), examples)
        return ServerState(unflat(found, state.adapter))

    return server_update


def check_parameters(server: Adapter, updates: Sequence[Update]) -> None:
    """
    Raises:
        QuorumError: nobody answered, or an update is more than an adapter of the server's shapes.
    """
    if not updates:
        raise QuorumError("a rule over updates needs some, and nobody answered; repeat the round")
    shapes = {name: tensor.shape for name, tensor in server.items()}
    for update in updates:
        if update.memory:
            raise QuorumError(
                f"a rule over parameters cannot judge {sorted(update.memory)[0]!r}, which travels besides them; choose "
                "an algorithm whose clients send an adapter alone"
            )
        if {name: tensor.shape for name, tensor in update.adapter.items()} != shapes:
            raise QuorumError("an update has other tensors than the server's; it is of another training")


def flat(adapter: Adapter, like: Adapter) -> Tensor:
    """All numbers of an adapter, by the names of another: (parameters,) in float64."""
    return torch.cat([adapter[name].double().flatten() for name in sorted(like)])


def unflat(numbers: Tensor, like: Adapter) -> Adapter:
    """The adapter of these numbers, in another's shapes and types."""
    names = sorted(like)
    parts = torch.split(numbers, [like[name].numel() for name in names])
    return {name: part.view(like[name].shape).to(like[name].dtype) for name, part in zip(names, parts, strict=True)}
