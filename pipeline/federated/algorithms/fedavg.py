"""AdaFedAvg: federated averaging of adapters.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1;
Eq. 2 of Feng et al. In a round every client trains the server's adapter on its own data. The server's next adapter is
the average of theirs, weighted by their numbers of examples n_i:

    w_i ← client i trains w          w ← Σ_i (n_i / Σ_j n_j) w_i
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientResult,
    ClientState,
    ClientUpdate,
    Context,
    Fit,
    Knobs,
    Sent,
    ServerState,
    ServerUpdate,
    Update,
    weighted_average,
)
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Aggregation = Literal["weighted", "uniform"]
"""How clients weigh in an average: by their examples, or equally."""
OptimizerState = Literal["fresh", "keep"]
"""Whether AdamW starts each round without moments, or with those of the last round."""


class Hyperparameters(Knobs):
    """How to average, and what becomes of AdamW's moments."""

    aggregation: Aggregation = Field(
        default="weighted", description="Weight clients by their examples, or equally (`uniform`)."
    )
    client_optimizer_state: OptimizerState = Field(
        default="fresh",
        description="Whether AdamW starts each round without moments, or with those of the last (`keep`).",
    )


def local_training(*, keep_moments: bool) -> ClientUpdate:
    """The client's part of a round; `keep_moments` saves AdamW's moments for the next one."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        fit = data.fit(sent.adapter, rng, moments=state.memory if keep_moments else None)
        return ClientState(fit.adapter, fit.moments), update_of(fit, data), fit.trace

    return client_update


def update_of(fit: Fit, data: ClientData) -> Update:
    """The update of a finished training: its adapter and the client's weight."""
    return Update(fit.adapter, data.examples, fit.trace.steps)


client_update = local_training(keep_moments=False)
"""The client's part of a round with a new optimizer; many algorithms share it."""


def averaged(updates: Iterable[Update], aggregation: Aggregation = "weighted") -> Adapter:
    """Σ p_i w_i with p_i = n_i / Σ_j n_j (Eq. 2), or the plain mean if `uniform`."""
    by_examples = aggregation == "weighted"
    return weighted_average((update.adapter, update.examples if by_examples else 1) for update in updates)


def averaging(aggregation: Aggregation) -> ServerUpdate:
    """The server's part of a round: the average of the updates."""

    def server_update(_state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        return ServerState(averaged(updates, aggregation))

    return server_update


def build(hyper: Hyperparameters) -> Algorithm:
    """The algorithm with these hyperparameters."""
    keep = hyper.client_optimizer_state == "keep"
    client_update = local_training(keep_moments=keep)
    return Algorithm(client_update, averaging(hyper.aggregation), evaluates="server", stateful=keep)
