"""AdaFedSelectKD: each client distils from the shared adapter only what that adapter is sure of.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Algorithm 1 with Eq. 8. A round:

    q_g ← teacher: the server's adapter, frozen          q_l ← student: the client's local adapter
    for each target word:  L = (1 − λ) CE + λ KL  where H(q_g) < τ,  else CE
    w ← Σ_i (n_i / Σ_j n_j) w_i

The text keeps local and global adapters apart (`local_start: own`, the default); the paper's pseudo-code has one W that
a round overwrites (`local_start: server`: the student restarts from the server's weights).

Controls at equal budget: `select` distils other tokens, `teacher` distils from another adapter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline.federated.algorithm import (
    TOTAL,
    Algorithm,
    ClientData,
    ClientState,
    Fit,
    Randomness,
    ServerState,
    Update,
)
from pipeline.federated.distillation import Direction, Distillation
from pipeline.federated.fedavg import Aggregation, averaging
from pipeline.federated.tau import Tau
from pipeline.model.adapter import Adapter

LocalStart = Literal["own", "server"]
Teacher = Literal["server", "initial", "own", "others"]
INITIAL = "initial."


class Distilling(BaseModel):
    """What every distilling client knows: λ in [0, 1], and the ablations.

    `local_start`: where a client's round starts from. `kd_from_round`: the first round that distils.
    `kd_direction`: KL(q_g ‖ q_l), or `reverse`. `teacher`: the server's adapter, the common initial one, the client's
    own of the last round, or the mean of the others'.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: LocalStart = "own"
    kd_from_round: int = Field(default=1, ge=1)
    kd_direction: Direction = "forward"
    teacher: Teacher = "server"
    aggregation: Aggregation = "weighted"
    client_optimizer_state: Literal["fresh", "keep"] = "fresh"

    @model_validator(mode="after")
    def _others_are_weighed(self) -> Distilling:
        if self.teacher == "others" and self.aggregation != "weighted":
            raise ValueError(
                "teacher: others takes the client's share out of a weighted average; set aggregation: weighted"
            )
        return self


class Hyperparameters(Distilling):
    """τ in nats, or as a quantile of the teacher's entropies; and which tokens are distilled."""

    tau: Tau
    select: Literal["entropy", "inverse", "random"] = "entropy"


def distilling(
    hyper: Distilling, how: Distillation
) -> Callable[[Adapter, ClientState, ClientData, Randomness], tuple[ClientState, Update]]:
    """The client's half of a round, with its loss and its reading of Algorithm 1 bound."""

    def client_update(
        shared: Adapter, state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update]:
        server = {name: tensor for name, tensor in shared.items() if name != TOTAL}
        initial = _remembered(state, server)
        start = state.adapter if hyper.local_start == "own" else server
        teachers: dict[Teacher, Callable[[], Adapter]] = {
            "server": lambda: server,
            "initial": lambda: initial,
            "own": lambda: state.adapter,
            "others": lambda: others_mean(server, state.adapter, data.examples, shared.get(TOTAL)),
        }
        moments = {n: t for n, t in state.memory.items() if not n.startswith(INITIAL)}
        kept = moments if hyper.client_optimizer_state == "keep" else None
        fit: Fit
        if rng.round < hyper.kd_from_round:
            fit = data.fit(start, rng, moments=kept)
        else:
            fit = data.fit(start, rng, teachers[hyper.teacher](), how, moments=kept)
        memory = {INITIAL + name: t for name, t in initial.items()} if hyper.teacher == "initial" else {}
        return ClientState(fit.adapter, fit.moments | memory), Update(fit.adapter, data.examples, fit.trace)

    return client_update


def _remembered(state: ClientState, server: Adapter) -> Adapter:
    """The adapter that everyone began with: what the server sends in a client's first round."""
    return {name: state.memory.get(INITIAL + name, tensor) for name, tensor in server.items()}


def others_mean(server: Adapter, own: Adapter, examples: int, total: torch.Tensor | None) -> Adapter:
    """(w − p_i w_i) / (1 − p_i): the server's average with the client's own part taken out of it again.

    Before the first round, and for a client that is alone, there are no others: the server's adapter.
    """
    share = 0.0 if total is None else examples / int(total)
    if not 0 < share < 1:
        return server
    return {name: (w - share * own[name]) / (1 - share) for name, w in server.items()}


def with_total(
    server_update: Callable[[ServerState, Sequence[Update]], ServerState],
) -> Callable[[ServerState, Sequence[Update]], ServerState]:
    """A server that also remembers how many examples are behind its adapter."""

    def remembering(state: ServerState, updates: Sequence[Update]) -> ServerState:
        total = torch.tensor(sum(update.examples for update in updates))
        return ServerState(server_update(state, updates).adapter, {TOTAL: total})

    return remembering


def assemble(
    hyper: Distilling, how: Distillation, marks: Callable[[Sequence[str]], Sequence[bool]] | None = None
) -> Algorithm:
    """A distilling algorithm from its hyperparameters and its loss."""
    server_update = averaging(hyper.aggregation)
    client_update = distilling(hyper, how)
    if hyper.teacher != "others":
        return Algorithm(client_update, server_update, evaluates="local", marks=marks)
    return Algorithm(
        client_update,
        with_total(server_update),
        evaluates="local",
        shares=lambda state: state.adapter | state.memory,
        marks=marks,
    )


def build(hyper: Hyperparameters) -> Algorithm:
    quantile = float(hyper.tau[1:]) if isinstance(hyper.tau, str) else None
    tau = math.nan if isinstance(hyper.tau, str) else hyper.tau
    return assemble(hyper, Distillation(tau, hyper.weight, hyper.select, hyper.kd_direction, quantile))
