"""AdaFedProx: federated averaging with clients held near the server's adapter.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Algorithm 2. Client i minimizes

    F_i(w) + (μ/2) ‖w − w_server‖²

the norm squared and summed over all tensors, so that every step's gradient gains μ (w − w_server). μ = 0 is AdaFedAvg.
"""

from __future__ import annotations

from pydantic import Field

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientState,
    ClientUpdate,
    Knobs,
    Pull,
    Sent,
    Trace,
    Update,
)
from pipeline.federated.algorithms.fedavg import averaging, update_of
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter


class Hyperparameters(Knobs):
    """μ, the weight of the proximal term."""

    mu: float = Field(ge=0)


def proximal(mu: float, anchor: Adapter) -> Pull:
    """∇ (μ/2) ‖w − anchor‖² = μ (w − anchor)."""
    return lambda adapter: {name: mu * (w - anchor[name].to(w.device)) for name, w in adapter.items()}


def training(mu: float) -> ClientUpdate:
    """The client's half of a round."""

    def client_update(
        sent: Sent, _state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update, Trace]:
        fit = data.fit(sent.adapter, rng, pull=proximal(mu, sent.adapter))
        return ClientState(fit.adapter), update_of(fit, data), fit.trace

    return client_update


def build(hyper: Hyperparameters) -> Algorithm:
    return Algorithm(training(hyper.mu), averaging("weighted"), evaluates="server", keeps=False)
