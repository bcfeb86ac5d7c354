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

from dataclasses import replace
from typing import Literal

from pydantic import Field, model_validator

from pipeline.federated.algorithm import Algorithm, ClientData, ClientResult, ClientState, Knobs, Sent
from pipeline.federated.algorithms.fedavg import Aggregation, OptimizerState, averaging, result_of
from pipeline.federated.algorithms.teachers import INITIAL, Teacher, initial_of, teacher_of
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.distillation import Direction, Distillation, Select
from pipeline.federated.objectives.threshold import Tau
from pipeline.federated.randomness import Randomness


class DistillationKnobs(Knobs):
    """The hyperparameters of every distilling algorithm."""

    weight: float = Field(ge=0, le=1, alias="lambda", description="λ (Eq. 6), the weight of the divergence.")
    local_start: Literal["own", "server"] = Field(
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


def assemble(hyper: DistillationKnobs, objective: Distillation) -> Algorithm:
    """A distilling algorithm from its hyperparameters and its objective."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        student = state.adapter if hyper.local_start == "own" else sent.adapter
        teacher = teacher_of(hyper.teacher, sent, state, data.examples)
        loss = objective.with_teacher(teacher) if rng.round >= hyper.kd_from_round else CROSS_ENTROPY
        saved = {name: tensor for name, tensor in state.memory.items() if not name.startswith(INITIAL)}
        moments = saved if hyper.client_optimizer_state == "keep" else None
        own, update, trace = result_of(data.fit(student, rng, loss, moments=moments), data)
        if hyper.teacher == "initial":
            first = {INITIAL + name: tensor for name, tensor in initial_of(sent, state).items()}
            own = replace(own, memory=own.memory | first)
        return own, update, trace

    # The teacher `others` needs the number of examples in the average.
    return Algorithm(
        client_update,
        averaging(hyper.aggregation, count=hyper.teacher == "others"),
        evaluates="local",
        shares=lambda server: Sent(server.adapter, server.memory),
        objective=objective,
    )


def build(hyper: Hyperparameters) -> Algorithm:
    return assemble(hyper, Distillation(hyper.tau, hyper.weight, hyper.select, hyper.kd_direction))
