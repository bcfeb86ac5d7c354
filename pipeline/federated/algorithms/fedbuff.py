"""FedBuff: the server goes on after a few answers, and stale ones count less.

Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022, Algorithms 1 and 2. A client
that was sent w in round v trains it to w_i, and sends what that changed. Once K changes are there, in round t:

    Δ_i = w_i − w^(v_i)        s_i = (1 + t − v_i)^(−a)        w ← w + η Σ_i p_i s_i Δ_i

over the K answers, p_i = n_i / Σ_j n_j (the paper's clients hold alike: 1 / K). Whoever answers is free for the next
round's draw; the others go on with what they were sent. With a buffer of all clients nothing is stale, and with η = 1
this is AdaFedAvg.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientState,
    Context,
    Knobs,
    Mean,
    Sent,
    ServerState,
    ServerUpdate,
    Trace,
    Update,
)
from pipeline.federated.randomness import Randomness


class Hyperparameters(Knobs):
    """K, how many answers make a round; a, how fast they lose weight with age; η, the server's step."""

    buffer: int = Field(ge=1)
    staleness: float = Field(default=0.5, ge=0)
    server_learning_rate: float = Field(default=1.0, gt=0)


def client_update(
    sent: Sent, state: ClientState, data: ClientData, rng: Randomness
) -> tuple[ClientState, Update, Trace]:
    fit = data.fit(sent.adapter, rng)
    change = {name: tensor - sent.adapter[name] for name, tensor in fit.adapter.items()}
    return ClientState(fit.adapter), Update(change, data.examples, fit.trace.steps), fit.trace


def buffering(hyper: Hyperparameters) -> ServerUpdate:
    """The server's half of a round."""

    def server_update(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
        mean = Mean()
        for update in updates:
            weight = (1 + context.round - update.version) ** -hyper.staleness
            mean.add({name: weight * tensor.double() for name, tensor in update.adapter.items()}, update.examples)
        moved = mean.value()
        return ServerState(
            {
                name: (tensor.double() + hyper.server_learning_rate * moved[name]).to(tensor.dtype)
                for name, tensor in state.adapter.items()
            }
        )

    return server_update


def build(hyper: Hyperparameters) -> Algorithm:
    return Algorithm(
        client_update, buffering(hyper), evaluates="server", travels="change", keeps=False, buffer=hyper.buffer
    )
