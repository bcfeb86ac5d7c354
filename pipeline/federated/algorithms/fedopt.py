"""AdaFedOPT: the server treats the clients' mean change as a gradient, and takes an optimizer's step along it.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2. With Δ = Σ p_i (w_i − w):

    m ← β₁ m + (1 − β₁) Δ
    v ← β₂ v + (1 − β₂) Δ²                  (adam)
        v − (1 − β₂) Δ² sign(v − Δ²)        (yogi)
        v + Δ²                              (adagrad)
    w ← w + η m / (√v + ε)

m₀ = 0, v₀ = ε², no bias correction; their τ is ε here. `momentum` is m ← β m + Δ, w ← w + η m: with β = 0 and η = 1 it
is AdaFedAvg.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from pydantic import Field

from pipeline.federated.algorithm import Algorithm, Context, Knobs, ServerState, ServerUpdate, Update
from pipeline.federated.algorithms.fedavg import averaged, client_update
from pipeline.model.adapter import Adapter

ServerOptimizer = Literal["adam", "yogi", "adagrad", "momentum"]


class Hyperparameters(Knobs):
    """The server's optimizer, its learning rate η, and its constants."""

    server_optimizer: ServerOptimizer = "adam"
    server_learning_rate: float = Field(gt=0)
    server_momentum: float = Field(default=0.9, ge=0, lt=1)
    server_beta2: float = Field(default=0.99, ge=0, lt=1)
    server_epsilon: float = Field(default=1e-3, gt=0)


def change(server: Adapter, updates: Iterable[Update]) -> Adapter:
    """Δ = Σ p_i (w_i − w)."""
    mean = averaged(updates)
    return {name: mean[name] - w for name, w in server.items()}


def stepping(hyper: Hyperparameters) -> ServerUpdate:
    """The server's half of a round."""
    beta, beta2, epsilon = hyper.server_momentum, hyper.server_beta2, hyper.server_epsilon
    fresh = 1.0 if hyper.server_optimizer == "momentum" else 1 - beta

    def second_moment(v: torch.Tensor, squared: torch.Tensor) -> torch.Tensor:
        if hyper.server_optimizer == "adam":
            return beta2 * v + (1 - beta2) * squared
        if hyper.server_optimizer == "yogi":
            return v - (1 - beta2) * squared * torch.sign(v - squared)
        return v + squared

    def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        adapter: Adapter = {}
        memory: dict[str, torch.Tensor] = {}
        for name, delta in change(state.adapter, updates).items():
            m = beta * state.memory.get(f"m.{name}", torch.zeros_like(delta)) + fresh * delta
            memory[f"m.{name}"] = m
            step = m
            if hyper.server_optimizer != "momentum":
                start = torch.full_like(delta, epsilon**2)
                v = second_moment(state.memory.get(f"v.{name}", start), delta**2)
                memory[f"v.{name}"] = v
                step = m / (v.sqrt() + epsilon)
            adapter[name] = state.adapter[name] + hyper.server_learning_rate * step
        return ServerState(adapter, memory)

    return server_update


def build(hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, stepping(hyper), evaluates="server", keeps=False)
