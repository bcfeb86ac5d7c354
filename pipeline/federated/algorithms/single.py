"""AdaSingle: each client trains on its own data alone.

The lower reference of Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting
Summarization", Section IV-B:

    w_i ← client i trains w_i

Nothing is sent, and there is no server's model.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientResult,
    ClientState,
    Context,
    Knobs,
    Sent,
    ServerState,
    Update,
)
from pipeline.federated.algorithms.fedavg import update_of
from pipeline.federated.randomness import Randomness


class Hyperparameters(Knobs):
    """There are none."""


def client_update(_sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
    """Continue from the client's own adapter."""
    fit = data.fit(state.adapter, rng)
    return ClientState(fit.adapter), update_of(fit, data), fit.trace


def server_update(state: ServerState, _updates: Iterable[Update], _context: Context) -> ServerState:
    """Change nothing."""
    return state


def build(_hyper: Hyperparameters) -> Algorithm:
    """The algorithm with these hyperparameters."""
    return Algorithm(client_update, server_update, evaluates="local", sends="nothing")
