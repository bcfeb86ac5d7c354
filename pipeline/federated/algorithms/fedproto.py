"""FedProto: clients share the mean states of their classes, and no weights.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Algorithm 1. Each client
has its own model:

    client i:  w_i ← train w_i with L_data + λ_P Σ_ξ ‖P̄^ξ − P_i^ξ(batch)‖², the second term from the second round on
               P_i^ξ ← the mean state of its N_i^ξ units of class ξ
    server:    P̄^ξ ← Σ_i N_i^ξ P_i^ξ / Σ_i N_i^ξ
"""

from collections.abc import Iterable

import torch
from pydantic import Field

from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientResult,
    ClientState,
    Context,
    Form,
    Knobs,
    Sent,
    ServerState,
    Update,
)
from pipeline.federated.algorithms.fedsum import OMEGA, PROTOTYPES
from pipeline.federated.figures import Bounds
from pipeline.federated.objectives.prototypes import NearPrototypes, class_means
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

COUNTS = "counts"


class Hyperparameters(Knobs):
    """λ_P."""

    prototype_weight: float = Field(
        default=1.0, gt=0, description="λ_P: the weight of the distance to P̄; 1 in the paper, on MNIST."
    )


def init(initial: Adapter, _examples: int) -> ServerState:
    """Begin without a unit behind a prototype."""
    return ServerState(initial, {PROTOTYPES: torch.zeros(2, initial[OMEGA[0]].shape[1]), COUNTS: torch.zeros(2)})


def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
    """The mean of all units' states, by class."""
    memories = [update.memory for update in updates]
    counts = torch.stack([memory[COUNTS] for memory in memories])
    sums = (torch.stack([memory[PROTOTYPES] for memory in memories]) * counts[..., None]).sum(0)
    total = counts.sum(0)
    return ServerState(state.adapter, {PROTOTYPES: sums / total.clamp(min=1)[:, None], COUNTS: total})


def build(hyper: Hyperparameters) -> Algorithm:
    """Clients train with a pull towards the shared class means, and send their own; the server averages these."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        loss = NearPrototypes(sent.memory[PROTOTYPES], sent.memory[COUNTS] > 0, hyper.prototype_weight)
        adapter, trace, _ = data.fit(state.adapter, rng, loss)
        states, _, labels = data.states(adapter)
        means, counts = class_means(states, labels)
        return ClientState(adapter), Update({}, data.examples, trace.steps, {PROTOTYPES: means, COUNTS: counts}), trace

    return Algorithm(
        client_update,
        server_update,
        evaluates="local",
        states=True,
        shares=lambda state: Sent({}, state.memory),
        init=init,
        holds=lambda sent: {PROTOTYPES: Form(sent.memory[PROTOTYPES].shape), COUNTS: Form((2,), Bounds(0.0, 1e9))},
    )
