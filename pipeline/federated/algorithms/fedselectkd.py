"""AdaFedSelectKD: each client distils from the shared adapter only where that adapter is certain.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Algorithm 1 with Eq. 8. A round:

    q_g ← teacher: the server's adapter, frozen          q_l ← student: the client's local adapter
    for each target word:  L = (1 − λ) CE + λ KL  where H(q_g) < τ,  else CE
    w ← Σ_i (n_i / Σ_j n_j) w_i

The paper's text has separate local and global adapters (`local_start: own`). Its pseudo-code has one W that a round
overwrites (`local_start: server`): the student restarts from the server's weights.

Controls with the same budget: `select` distils other tokens; `teacher` distils from another adapter (see `teachers`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from pipeline.federated.algorithm import Algorithm, ClientData, ClientResult, ClientState, ClientUpdate, Knobs, Sent
from pipeline.federated.algorithms.fedavg import Aggregation, OptimizerState, averaging, update_of
from pipeline.federated.algorithms.teachers import (
    INITIAL,
    Teacher,
    counting_examples,
    send_with_total,
    teacher_memory,
    teacher_of,
)
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.distillation import Direction, Distillation, Select
from pipeline.federated.objectives.threshold import Tau
from pipeline.federated.randomness import Randomness

LocalStart = Literal["own", "server"]
"""The adapter from which a client's round starts."""


class DistillationKnobs(Knobs):
    """The hyperparameters of every distilling algorithm."""

    weight: float = Field(ge=0, le=1, alias="lambda", description="λ (Eq. 6), the weight of the divergence.")
    local_start: LocalStart = Field(
        default="own", description="Where a client's round starts: its own adapter, or the server's."
    )
    kd_from_round: int = Field(default=1, ge=1, description="The first round that distils (ablation).")
    kd_direction: Direction = Field(default="forward", description="KL(q_g ‖ q_l), or KL(q_l ‖ q_g) (`reverse`).")
    teacher: Teacher = Field(default="server", description="The adapter that teaches (controls; see `teachers`).")
    aggregation: Aggregation = Field(default="weighted", description="As in AdaFedAvg.")
    client_optimizer_state: OptimizerState = Field(default="fresh", description="As in AdaFedAvg.")

    @model_validator(mode="after")
    def _others_need_weights(self) -> DistillationKnobs:
        if self.teacher == "others" and self.aggregation != "weighted":
            raise ValueError(
                "teacher: others subtracts the client's share of a weighted average; set aggregation: weighted"
            )
        return self


class Hyperparameters(DistillationKnobs):
    """Those of every distilling algorithm, and the selection of tokens."""

    tau: Tau = Field(description="τ (Eq. 8), an entropy in nats, or a quantile of the teacher's entropies as in q0.88.")
    select: Select = Field(
        default="entropy", description="Distil where H < τ, where H ≥ τ (`inverse`), or as many at `random`."
    )


def distilling(hyper: DistillationKnobs, objective: Distillation) -> ClientUpdate:
    """The client's part of a round: choose a student and a teacher, and train."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        student = state.adapter if hyper.local_start == "own" else sent.adapter
        memory = teacher_memory(hyper.teacher, sent, state)
        saved = {name: tensor for name, tensor in state.memory.items() if not name.startswith(INITIAL)}
        moments = saved if hyper.client_optimizer_state == "keep" else None
        teacher = teacher_of(hyper.teacher, sent, state, data.examples)
        distils = rng.round >= hyper.kd_from_round
        fit = data.fit(student, rng, objective.with_teacher(teacher) if distils else CROSS_ENTROPY, moments=moments)
        return ClientState(fit.adapter, fit.moments | memory), update_of(fit, data), fit.trace

    return client_update


def assemble(hyper: DistillationKnobs, objective: Distillation) -> Algorithm:
    """A distilling algorithm from its hyperparameters and its objective."""
    client_update, server_update = distilling(hyper, objective), averaging(hyper.aggregation)
    if hyper.teacher != "others":
        return Algorithm(client_update, server_update, evaluates="local", objective=objective)
    counting = counting_examples(server_update)
    return Algorithm(client_update, counting, evaluates="local", shares=send_with_total, objective=objective)


def build(hyper: Hyperparameters) -> Algorithm:
    """The algorithm with these hyperparameters."""
    return assemble(hyper, Distillation(hyper.tau, hyper.weight, hyper.select, hyper.kd_direction))
