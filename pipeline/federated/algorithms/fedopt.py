"""AdaFedOPT: the server's optimizer takes a step with the clients' mean change as its gradient.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2. With Δ = Σ p_i (w_i − w):

    m ← β₁ m + (1 − β₁) Δ
    v ← β₂ v + (1 − β₂) Δ²                  (adam)
        v − (1 − β₂) Δ² sign(v − Δ²)        (yogi)
        v + Δ²                              (adagrad)
    w ← w + η m / (√v + ε)

m₀ = 0, v₀ = ε², no bias correction. The paper's τ is ε here. `momentum` is m ← β₁ m + Δ, w ← w + η m; with β₁ = 0 and
η = 1 it is AdaFedAvg.
"""

from collections.abc import Iterable
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from pipeline.federated.algorithm import Algorithm, Context, Knobs, ServerState, ServerUpdate, Update
from pipeline.federated.algorithms.fedavg import client_update, mean_of

ServerOptimizer = Literal["adam", "yogi", "adagrad", "momentum"]
"""FedAdam, FedYogi, FedAdagrad (Reddi et al.), or momentum (Hsu et al.)."""


class Hyperparameters(Knobs):
    """See Algorithm 2; the defaults of the constants are the paper's."""

    server_optimizer: ServerOptimizer = Field(default="adam", description="The rule for v, or `momentum` without v.")
    server_learning_rate: float = Field(gt=0, description="η, the server's learning rate.")
    server_momentum: float = Field(default=0.9, ge=0, lt=1, description="β₁, the decay of m; 0.9 in the paper.")
    server_beta2: float = Field(
        default=0.99, ge=0, lt=1, description="β₂, the decay of v (adam, yogi); 0.99 in the paper."
    )
    server_epsilon: float = Field(default=1e-3, gt=0, description="ε (their τ), the adaptivity; 1e-3 in the paper.")


def stepping(hyper: Hyperparameters) -> ServerUpdate:
    """The server's part of a round: one step of its optimizer."""
    beta, beta2, rule = hyper.server_momentum, hyper.server_beta2, hyper.server_optimizer
    share = 1.0 if rule == "momentum" else 1 - beta

    def second_moment(v: Tensor, squared: Tensor) -> Tensor:
        if rule == "adam":
            return beta2 * v + (1 - beta2) * squared
        if rule == "yogi":
            return v - (1 - beta2) * squared * torch.sign(v - squared)
        return v + squared

    def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        adapter, memory, mean = {}, {}, mean_of(updates).value()
        for name, w in state.adapter.items():
            delta = mean[name] - w
            m = step = beta * state.memory.get(f"m.{name}", torch.zeros_like(w)) + share * delta
            memory[f"m.{name}"] = m
            if rule != "momentum":
                start = torch.full_like(w, hyper.server_epsilon**2)
                v = second_moment(state.memory.get(f"v.{name}", start), delta**2)
                memory[f"v.{name}"] = v
                step = m / (v.sqrt() + hyper.server_epsilon)
            adapter[name] = w + hyper.server_learning_rate * step
        return ServerState(adapter, memory)

    return server_update


def build(hyper: Hyperparameters) -> Algorithm:
    """AdaFedAvg's clients, and a step of the chosen optimizer on the server."""
    return Algorithm(client_update, stepping(hyper), evaluates="server", stateful=False)
