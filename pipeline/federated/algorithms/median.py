"""Median: the server takes, number by number, the median of the clients'.

Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018, Definition 1:

    w[k] ← median_i w_i[k]

Of an even number of clients the mean of the middle two. Fewer than half may be bad. Clients count alike, whatever they
hold.
"""

from __future__ import annotations

from torch import Tensor

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.federated.algorithms.robust import aggregating


class Hyperparameters(Knobs):
    """None of its own."""


def median(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
    """(clients, parameters) -> (parameters,)."""
    ordered = updates.sort(dim=0).values
    count = len(ordered)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, aggregating(median), evaluates="server", keeps=False)
