"""AdaSingle: each client trains on its own data and hears of no other.

The paper's non-federated lower reference (Feng et al., Section IV-B).
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Knobs, Randomness, ServerState, Update
from pipeline.model.adapter import Adapter


class Hyperparameters(Knobs):
    """None of its own."""


def client_update(
    _shared: Adapter, state: ClientState, data: ClientData, rng: Randomness
) -> tuple[ClientState, Update]:
    fit = data.fit(state.adapter, rng)
    return ClientState(fit.adapter), Update(fit.adapter, data.examples, fit.trace)


def server_update(state: ServerState, _updates: Sequence[Update]) -> ServerState:
    return state


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, server_update, evaluates="local", communicates=False)
