"""AdaFedAvg: federated averaging of adapters.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1;
Eq. 2 of Feng et al. A round: every client starts from the server's adapter and trains on its own data; the server's
next adapter is their average, weighted by examples:

    w_i ← client i trains w          w ← Σ_i (n_i / Σ_j n_j) w_i
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientState,
    Randomness,
    ServerState,
    Update,
    weighted_average,
)
from pipeline.model.adapter import Adapter


class Hyperparameters(BaseModel):
    """None of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def client_update(
    shared: Adapter, _state: ClientState, data: ClientData, rng: Randomness
) -> tuple[ClientState, Update]:
    adapter, trace = data.fit(shared, rng)
    return ClientState(adapter), Update(adapter, data.examples, trace)


def server_update(_state: ServerState, updates: Sequence[Update]) -> ServerState:
    return ServerState(weighted_average([u.adapter for u in updates], [u.examples for u in updates]))


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, server_update, evaluates="server")
