"""Robust aggregation: rules that see all updates of a round as one matrix, to tolerate faulty ones."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.model.adapter import Adapter

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(updates (clients, parameters), server (parameters,), examples (clients,)) -> the next server; in float64."""


def aggregating(rule: Rule, needed: int = 1, what: str = "") -> Algorithm:
    """Clients train as in AdaFedAvg, and the server aggregates by a rule over parameters.

    A round of fewer than `needed` clients ends the training with an error, which names `what` needs them.
    """

    def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        arrived = list(updates)
        if len(arrived) < needed:
            raise QuorumError(
                f"{what} needs {needed} clients in a round, and {len(arrived)} answered; lower it, or select more"
            )
        rows = torch.stack([_flattened(update.adapter) for update in arrived])
        examples = torch.tensor([update.examples for update in arrived], dtype=torch.float64)
        return ServerState(_shaped(rule(rows, _flattened(state.adapter), examples), state.adapter))

    return Algorithm(client_update, server_update, evaluates="server", stateful=False, needs=needed)


def _flattened(adapter: Adapter) -> Tensor:
    """The parameters in the order of the tensors' names: (parameters,) in float64."""
    return torch.cat([adapter[name].double().flatten() for name in sorted(adapter)])


def _shaped(numbers: Tensor, like: Adapter) -> Adapter:
    """The inverse of `_flattened`, in the shapes and types of `like`."""
    names = sorted(like)
    parts = torch.split(numbers, [like[name].numel() for name in names])
    return {name: part.view(like[name].shape).to(like[name].dtype) for name, part in zip(names, parts, strict=True)}
