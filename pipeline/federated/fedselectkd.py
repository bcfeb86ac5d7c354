"""AdaFedSelectKD: each client distils from the shared adapter only what that adapter is sure of.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Algorithm 1 with Eq. 8. A round:

    q_g ← teacher: the server's adapter, frozen          q_l ← student: the client's local adapter
    for each target word:  L = (1 − λ) CE + λ KL  where H(q_g) < τ,  else CE
    w ← Σ_i (n_i / Σ_j n_j) w_i

The text keeps local and global adapters apart (`local_start: own`, the default); the paper's pseudo-code has one W that
a round overwrites (`local_start: server`: the student restarts from the server's weights).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, Randomness, Update
from pipeline.federated.distillation import Distillation
from pipeline.federated.fedavg import server_update
from pipeline.model.adapter import Adapter

LocalStart = Literal["own", "server"]


class Hyperparameters(BaseModel):
    """τ in nats, λ in [0, 1], and where a client's round starts from."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    tau: float = Field(ge=0)
    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: LocalStart = "own"


def distilling(
    how: Distillation, local_start: LocalStart
) -> Callable[[Adapter, ClientState, ClientData, Randomness], tuple[ClientState, Update]]:
    """The client's half of a round, with its loss and its reading of Algorithm 1 bound."""

    def client_update(
        shared: Adapter, state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update]:
        start = state.adapter if local_start == "own" else shared
        adapter, trace = data.fit(start, rng, teacher=shared, how=how)
        return ClientState(adapter), Update(adapter, data.examples, trace)

    return client_update


def build(hyper: Hyperparameters) -> Algorithm:
    client_update = distilling(Distillation(hyper.tau, hyper.weight), hyper.local_start)
    return Algorithm(client_update, server_update, evaluates="local")
