"""AdaFedAvg: federated averaging of adapters.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1;
Eq. 2 of Feng et al. In a round every client trains the server's adapter on its own data. The server's next adapter is
the average of theirs, weighted by their numbers of examples n_i:

    w_i ← client i trains w          w ← Σ_i (n_i / Σ_j n_j) w_i
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from pydantic import Field

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientResult,
    ClientState,
    ClientUpdate,
    Fit,
    Knobs,
    Pull,
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


def local_training(*, keep_moments: bool = False, pull: Callable[[Adapter], Pull] | None = None) -> ClientUpdate:
    """The client's part of a round; `pull` has a further term of the gradient for the server's adapter."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        moments = state.memory if keep_moments else None
        return result_of(data.fit(sent.adapter, rng, pull=pull and pull(sent.adapter), moments=moments), data)

    return client_update


def result_of(fit: Fit, data: ClientData) -> ClientResult:
    """A finished training: the client stores its adapter and moments, and sends the adapter with its weight."""
    update = Update(fit.adapter, data.examples, fit.trace.steps)
    return ClientState(fit.adapter, fit.moments), update, fit.trace


client_update = local_training()
"""The client's part of a round with a new optimizer; many algorithms share it."""


def averaged(updates: Iterable[Update], aggregation: Aggregation = "weighted") -> Adapter:
    """Σ p_i w_i with p_i = n_i / Σ_j n_j (Eq. 2), or the plain mean if `uniform`."""
    by_examples = aggregation == "weighted"
    return weighted_average((update.adapter, update.examples if by_examples else 1) for update in updates)


def averaging(aggregation: Aggregation = "weighted") -> ServerUpdate:
    """The server's part of a round: the average of the updates."""
    return lambda _state, updates, _context: ServerState(averaged(updates, aggregation))


def build(hyper: Hyperparameters) -> Algorithm:
    keep = hyper.client_optimizer_state == "keep"
    return Algorithm(local_training(keep_moments=keep), averaging(hyper.aggregation), evaluates="server", stateful=keep)
