"""SCAFFOLD: clients correct their gradients by control variates, which estimate the drift of each client.

Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020, Algorithm 1. A
round, for the clients S of N that take part:

    client i:  w_i ← train w with c − c_i added to every gradient, K steps at the rate η
               c_i⁺ ← ∇F_i(w), the gradient of all its examples at the server's adapter    Option I
               c_i⁺ ← c_i − c + (w − w_i) / (K η), the mean gradient of its steps by SGD   Option II
    server:    w ← Σ p_i w_i          c ← c + Σ_{i∈S} (n_i / Σ_{j∈N} n_j) (c_i⁺ − c_i)

The paper weights clients equally, in c and in w. Here both are weighted by examples, as in AdaFedAvg, so that c is the
gradient of the objective that the average w minimizes. The paper's clients run SGD. With AdamW, which rescales the
corrected gradient, it is a heuristic; the report mentions it. Sending control variates doubles the bytes of a round.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

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
    WeightedMean,
)
from pipeline.federated.algorithms.fedavg import TOTAL
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

VARIATE = "variate."  # the prefix of a control variate's tensors in a memory


class Hyperparameters(Knobs):
    """The paper's options for c_i⁺."""

    option: Literal["I", "II"] = Field(
        default="I",
        exclude_if=lambda value: value == "I",
        description="c_i⁺: the gradient at the server's adapter (I), or the mean gradient of the steps (II).",
    )


def variate_of(tensors: Mapping[str, Tensor], adapter: Adapter) -> Adapter:
    """The control variate in a memory; zero if there is none yet."""
    return {name: tensors.get(VARIATE + name, torch.zeros_like(w)) for name, w in adapter.items()}


def as_memory(variate: Adapter) -> Adapter:
    """A control variate as the tensors of a memory."""
    return {VARIATE + name: tensor for name, tensor in variate.items()}


def init(initial: Adapter, examples: int) -> ServerState:
    """Begin with c = 0, and store the number of examples of all clients."""
    return ServerState(initial, as_memory(variate_of({}, initial)) | {TOTAL: torch.tensor(examples)})


def shares(state: ServerState) -> Sent:
    """Send w and c."""
    return Sent(state.adapter, as_memory(variate_of(state.memory, state.adapter)))


def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
    """Average the adapters, and move c by the share of the examples that took part."""
    adapter, moved = WeightedMean(), WeightedMean()
    for update in updates:
        adapter.add(update.adapter, update.examples)
        moved.add(variate_of(update.memory, state.adapter), update.examples)
    share, mean = moved.weight / int(state.memory[TOTAL]), moved.value()
    variate = {name: c + share * mean[name] for name, c in variate_of(state.memory, state.adapter).items()}
    return ServerState(adapter.value(), state.memory | as_memory(variate))


def build(hyper: Hyperparameters) -> Algorithm:
    """Clients that correct their gradients by control variates, and the server that averages both."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        """Train w with corrected gradients; send w_i and c_i⁺ − c_i, and store c_i⁺."""
        server = sent.adapter
        shared, own = variate_of(sent.memory, server), variate_of(state.memory, server)
        correction = {name: shared[name] - own[name] for name in server}
        fit = data.fit(server, rng, pull=lambda adapter: {n: correction[n].to(w.device) for n, w in adapter.items()})
        if hyper.option == "I":
            renewed = data.gradient(server)
        else:
            far = fit.trace.steps * data.learning_rate
            renewed = {name: (w - fit.adapter[name]) / far - correction[name] for name, w in server.items()}
        moved = {name: renewed[name] - own[name] for name in server}
        update = Update(fit.adapter, data.examples, fit.trace.steps, as_memory(moved))
        return ClientState(fit.adapter, as_memory(renewed)), update, fit.trace

    return Algorithm(client_update, server_update, evaluates="server", init=init, shares=shares)
