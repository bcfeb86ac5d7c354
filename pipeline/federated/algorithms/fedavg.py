"""AdaFedAvg: federated averaging of adapters.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, Algorithm 1;
Eq. 2 of Feng et al. In a round every client trains the server's adapter on its own data. The server's next adapter is
the average of theirs, weighted by their numbers of examples n_i:

    w_i ← client i trains w          w ← Σ_i (n_i / Σ_j n_j) w_i
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

import torch
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
    Pull,
    Sent,
    ServerState,
    ServerUpdate,
    Update,
    WeightedMean,
)
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Aggregation = Literal["weighted", "uniform"]
"""How clients weigh in an average: by their examples, or equally."""
OptimizerState = Literal["fresh", "keep"]
"""Whether AdamW starts each round without moments, or with those of the last round."""
TOTAL = "examples_of_all"
"""The tensor in a server's memory with the number of examples of an average, or of all clients (SCAFFOLD)."""


class Hyperparameters(Knobs):
    """How to average, and what becomes of AdamW's moments."""

    aggregation: Aggregation = Field(
        default="weighted", description="Weight clients by their examples, or equally (`uniform`)."
    )
    client_optimizer_state: OptimizerState = Field(
        default="fresh",
        description="Whether AdamW starts each round without moments, or with those of the last (`keep`).",
    )


def local_training(
    *, keep_moments: bool = False, pull: Callable[[Adapter], Pull] | None = None, sends_change: bool = False
) -> ClientUpdate:
    """The client's part of a round.

    `pull`: the server's adapter -> a further term of the gradient. `sends_change`: send w_i − w instead of w_i.
    """

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        moments = state.memory if keep_moments else None
        fit = data.fit(sent.adapter, rng, pull=pull and pull(sent.adapter), moments=moments)
        state, update, trace = result_of(fit, data)
        if sends_change:
            update = replace(update, adapter={name: w - sent.adapter[name] for name, w in update.adapter.items()})
        return state, update, trace

    return client_update


def result_of(fit: Fit, data: ClientData) -> ClientResult:
    """A finished training: the client stores its adapter and moments, and sends the adapter with its weight."""
    update = Update(fit.adapter, data.examples, fit.trace.steps)
    return ClientState(fit.adapter, fit.moments), update, fit.trace


client_update = local_training()
"""The client's part of a round with a new optimizer; many algorithms share it."""


def mean_of(updates: Iterable[Update], aggregation: Aggregation = "weighted") -> WeightedMean:
    """Σ p_i w_i with p_i = n_i / Σ_j n_j (Eq. 2), or the plain mean if `uniform`."""
    return WeightedMean((one.adapter, one.examples if aggregation == "weighted" else 1) for one in updates)


def averaging(aggregation: Aggregation = "weighted", *, count: bool = False) -> ServerUpdate:
    """The server's part of a round: the average of the updates and, with `count`, the number of examples in it."""

    def server_update(_state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
        mean = mean_of(updates, aggregation)
        return ServerState(mean.value(), {TOTAL: torch.tensor(int(mean.weight))} if count else {})

    return server_update


def build(hyper: Hyperparameters) -> Algorithm:
    """Local training from the server's adapter, then the clients' weighted mean."""
    keep = hyper.client_optimizer_state == "keep"
    return Algorithm(local_training(keep_moments=keep), averaging(hyper.aggregation), evaluates="server", stateful=keep)
