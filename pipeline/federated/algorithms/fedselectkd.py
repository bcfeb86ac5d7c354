"""AdaFedSelectKD: each client distils from the shared adapter only what that adapter is sure of.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Algorithm 1 with Eq. 8. A round:

    q_g ← teacher: the server's adapter, frozen          q_l ← student: the client's local adapter
    for each target word:  L = (1 − λ) CE + λ KL  where H(q_g) < τ,  else CE
    w ← Σ_i (n_i / Σ_j n_j) w_i

The text keeps local and global adapters apart (`local_start: own`); the paper's pseudo-code has one W that
a round overwrites (`local_start: server`: the student restarts from the server's weights).

Controls at equal budget: `select` distils other tokens, `teacher` distils from another adapter (see `teachers`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, ClientUpdate, Knobs, Sent, Trace, Update
from pipeline.federated.algorithms.fedavg import Aggregation, OptimizerState, averaging, update_of
from pipeline.federated.algorithms.teachers import INITIAL, Teacher, of_all, remembered, teacher_of, with_total
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.distillation import Direction, Distillation, Select
from pipeline.federated.objectives.threshold import Tau
from pipeline.federated.randomness import Randomness

LocalStart = Literal["own", "server"]


class Distilling(Knobs):
    """What every distilling client knows: λ in [0, 1], and the ablations.

    `local_start`: where a client's round starts from. `kd_from_round`: the first round that distils.
    `kd_direction`: KL(q_g ‖ q_l), or `reverse`. `teacher`: the server's adapter, the common initial one, the client's
    own of the last round, or the mean of the others'.
    """

    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: LocalStart = "own"
    kd_from_round: int = Field(default=1, ge=1)
    kd_direction: Direction = "forward"
    teacher: Teacher = "server"
    aggregation: Aggregation = "weighted"
    client_optimizer_state: OptimizerState = "fresh"

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
    select: Select = "entropy"


def distilling(hyper: Distilling, objective: Distillation) -> ClientUpdate:
    """The client's half of a round, with its objective and its reading of Algorithm 1 bound."""

    def client_update(
        sent: Sent, state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update, Trace]:
        student = state.adapter if hyper.local_start == "own" else sent.adapter
        memory = remembered(hyper.teacher, sent, state)
        known = {name: tensor for name, tensor in state.memory.items() if not name.startswith(INITIAL)}
        moments = known if hyper.client_optimizer_state == "keep" else None
        teacher = teacher_of(hyper.teacher, sent, state, data.examples)
        distils = rng.round >= hyper.kd_from_round
        fit = data.fit(student, rng, objective.taught_by(teacher) if distils else CROSS_ENTROPY, moments=moments)
        return ClientState(fit.adapter, fit.moments | memory), update_of(fit, data), fit.trace

    return client_update


def assemble(hyper: Distilling, objective: Distillation) -> Algorithm:
    """A distilling algorithm from its hyperparameters and its objective."""
    client_update, server_update = distilling(hyper, objective), averaging(hyper.aggregation)
    if hyper.teacher != "others":
        return Algorithm(client_update, server_update, evaluates="local")
    return Algorithm(client_update, with_total(server_update), evaluates="local", shares=of_all)


def build(hyper: Hyperparameters) -> Algorithm:
    return assemble(hyper, Distillation(hyper.tau, hyper.weight, hyper.select, hyper.kd_direction))
