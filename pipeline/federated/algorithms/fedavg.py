"""AdaFedAvg: federated averaging of adapters.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1;
Eq. 2 of Feng et al. A round: every client starts from the server's adapter and trains on its own data; the server's
next adapter is their average, weighted by examples:

    w_i ← client i trains w          w ← Σ_i (n_i / Σ_j n_j) w_i

`aggregation: uniform` weighs all clients alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientState,
    ClientUpdate,
    Context,
    Fit,
    Knobs,
    Sent,
    ServerState,
    ServerUpdate,
    Trace,
    Update,
    weighted_average,
)
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Aggregation = Literal["weighted", "uniform"]
OptimizerState = Literal["fresh", "keep"]


class Hyperparameters(Knobs):
    """How clients are weighed, and whether a client's optimizer outlives its round."""

    aggregation: Aggregation = "weighted"
    client_optimizer_state: OptimizerState = "fresh"


def training(*, keep_moments: bool) -> ClientUpdate:
    """The client's half of a round; `keep_moments` hands AdamW's moments on to the next one."""

    def client_update(
        sent: Sent, state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update, Trace]:
        fit = data.fit(sent.adapter, rng, moments=state.memory if keep_moments else None)
        return ClientState(fit.adapter, fit.moments), update_of(fit, data), fit.trace

    return client_update


def update_of(fit: Fit, data: ClientData) -> Update:
    """What a client sends of a finished training: its adapter."""
    return Update(fit.adapter, data.examples, fit.trace.steps)


client_update = training(keep_moments=False)


def averaged(updates: Iterable[Update], aggregation: Aggregation = "weighted") -> Adapter:
    """Σ p_i w_i (Eq. 2), or the plain mean."""
    weighs = aggregation == "weighted"
    return weighted_average((update.adapter, update.examples if weighs else 1) for update in updates)


def averaging(aggregation: Aggregation) -> ServerUpdate:
    """The server's half of a round."""

    def server_update(_state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        return ServerState(averaged(updates, aggregation))

    return server_update


def build(hyper: Hyperparameters) -> Algorithm:
    keeps = hyper.client_optimizer_state == "keep"
    return Algorithm(training(keep_moments=keeps), averaging(hyper.aggregation), evaluates="server", keeps=keeps)
