"""Median: each parameter of the server is the median of the clients' values.

Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018, Definition 1:

    w[k] ← median_i w_i[k]

For an even number of clients it is the mean of the middle two. It tolerates fewer than half faulty clients. All clients
have equal weights.
"""

from torch import Tensor

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.robust import aggregating

Hyperparameters = Knobs  # there are none


def median(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
    """The rule: (clients, parameters) -> (parameters,)."""
    ordered = updates.sort(dim=0).values
    count = len(ordered)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def build(_hyper: Hyperparameters) -> Algorithm:
    """The coordinate-wise median of a round's adapters."""
    return aggregating(median)
