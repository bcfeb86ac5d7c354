"""AdaSingle: each client trains on its own data and hears of no other.

The paper's non-federated lower reference (Feng et al., Section IV-B).
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientState,
    Context,
    Knobs,
    Sent,
    ServerState,
    Trace,
    Update,
)
from pipeline.federated.algorithms.fedavg import update_of
from pipeline.federated.randomness import Randomness


class Hyperparameters(Knobs):
    """None of its own."""


def client_update(
    _sent: Sent, state: ClientState, data: ClientData, rng: Randomness
) -> tuple[ClientState, Update, Trace]:
    fit = data.fit(state.adapter, rng)
    return ClientState(fit.adapter), update_of(fit, data), fit.trace


def server_update(state: ServerState, _updates: Iterable[Update], _context: Context) -> ServerState:
    return state


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, server_update, evaluates="local", travels="nothing")
