"""AdaFedAvgM: federated averaging with momentum on the server.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019.
With Δ = Σ p_i (w_i − w):

    m ← β m + Δ          w ← w + m

This is AdaFedOPT's `momentum` with η = 1. With β = 0 it is AdaFedAvg.
"""

from pydantic import Field

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.federated.algorithms.fedopt import Hyperparameters as ServerOptimizer
from pipeline.federated.algorithms.fedopt import stepping


class Hyperparameters(Knobs):
    """See the paper, Section 4."""

    server_momentum: float = Field(default=0.9, ge=0, lt=1, description="β, the server's momentum; 0.9 in the paper.")


def build(hyper: Hyperparameters) -> Algorithm:
    """AdaFedAvg's clients, and a momentum step of rate 1 on the server."""
    momentum = ServerOptimizer(
        server_optimizer="momentum", server_learning_rate=1.0, server_momentum=hyper.server_momentum
    )
    return Algorithm(client_update, stepping(momentum), evaluates="server", stateful=False)
