"""SCAFFOLD: clients correct their gradients by how their own differ from everyone's.

Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020, Algorithm 1 with
Option I. A round, for the clients S of N that take part:

    client i:  w_i ← train w with c − c_i added to every gradient
               c_i⁺ ← ∇F_i(w), the gradient of its whole data at the server's adapter
    server:    w ← Σ p_i w_i          c ← c + Σ_{i∈S} (n_i / Σ_{j∈N} n_j) (c_i⁺ − c_i)

The paper weighs clients alike, in c as in w; here both are weighed by examples, as in AdaFedAvg, so that c is the
gradient of the objective that w is averaged for. The paper's clients run SGD. Here the corrected gradient goes through
AdamW, which rescales it: a heuristic, and the report says so. Control variates travel beside the adapter and double its
bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientState,
    Context,
    Knobs,
    Mean,
    Sent,
    ServerState,
    Trace,
    Update,
)
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

VARIATE = "variate."
TOTAL = "examples_of_all"
"""Where the server's memory keeps how many examples all clients have."""


class Hyperparameters(Knobs):
    """None of its own."""


def variate_of(tensors: Mapping[str, Tensor], adapter: Adapter) -> Adapter:
    """A control variate out of what travelled or was remembered; zero where there is none yet."""
    return {name: tensors.get(VARIATE + name, torch.zeros_like(w)) for name, w in adapter.items()}


def named(variate: Adapter) -> Adapter:
    return {VARIATE + name: tensor for name, tensor in variate.items()}


def init(initial: Adapter, examples: int) -> ServerState:
    return ServerState(initial, named(variate_of({}, initial)) | {TOTAL: torch.tensor(examples)})


def shares(state: ServerState) -> Sent:
    return Sent(state.adapter, named(variate_of(state.memory, state.adapter)))


def client_update(
    sent: Sent, state: ClientState, data: ClientData, rng: Randomness
) -> tuple[ClientState, Update, Trace]:
    server = sent.adapter
    everyone, own = variate_of(sent.memory, server), variate_of(state.memory, server)
    correction = {name: everyone[name] - own[name] for name in server}
    fit = data.fit(server, rng, pull=lambda adapter: {n: correction[n].to(w.device) for n, w in adapter.items()})
    renewed = data.gradient(server)
    moved = {name: renewed[name] - own[name] for name in server}
    update = Update(fit.adapter, data.examples, fit.trace.steps, named(moved))
    return ClientState(fit.adapter, named(renewed)), update, fit.trace


def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
    adapter, moved = Mean(), Mean()
    for update in updates:
        adapter.add(update.adapter, update.examples)
        moved.add(variate_of(update.memory, state.adapter), update.examples)
    total = state.memory[TOTAL]
    share, mean = moved.weight / int(total), moved.value()
    variate = {name: c + share * mean[name] for name, c in variate_of(state.memory, state.adapter).items()}
    return ServerState(adapter.value(), named(variate) | {TOTAL: total})


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, server_update, evaluates="server", init=init, shares=shares)
