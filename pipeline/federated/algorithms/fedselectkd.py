"""AdaFedSelectKD: each client distils from the shared adapter only where that adapter is certain.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Algorithm 1 with Eq. 8. A round:

    q_g ← teacher: the server's adapter, frozen          q_l ← student: the client's local adapter
    for each target word:  L = (1 − λ) CE + λ KL  where H(q_g) < τ,  else CE
    w ← Σ_i (n_i / Σ_j n_j) w_i

The paper's text has separate local and global adapters (`local_start: own`). Its pseudo-code has one W that a round
overwrites (`local_start: server`): the student restarts from the server's weights.

Controls with the same budget: `select` distils other tokens; `teacher` distils from another adapter. `initial` is the
first adapter of the training; `own` is the client's own of its last round; `others` is the mean of the other clients'
adapters, the server's average without the client's own part:

    (w − p_i w_i) / (1 − p_i)
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.federated.algorithm import Algorithm, ClientData, ClientResult, ClientState, Knobs, Sent
from pipeline.federated.algorithms.fedavg import TOTAL, Aggregation, OptimizerState, averaging, result_of
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.distillation import Direction, Distillation, Select
from pipeline.federated.objectives.threshold import Tau
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Teacher = Literal["server", "initial", "own", "others"]  # which adapter teaches
INITIAL = "initial."  # the prefix of the initial adapter's tensors in a client's memory


class DistillationKnobs(Knobs):
    """The hyperparameters of every distilling algorithm."""

    of_file: ClassVar[tuple[str, ...]] = ("tau", "lambda", "local_start")
    """Those that params.yaml has at its top, for all runs that distil."""

    weight: float = Field(ge=0, le=1, alias="lambda", description="λ (Eq. 6), the weight of the divergence.")
    local_start: Literal["own", "server"] = Field(
        default="server", description="Where a client's round starts: its own adapter, or the server's."
    )
    kd_from_round: int = Field(default=1, ge=1, description="The first round that distils (ablation).")
    kd_direction: Direction = Field(default="forward", description="KL(q_g ‖ q_l), or KL(q_l ‖ q_g) (`reverse`).")
    teacher: Teacher = Field(
        default="server", description="The adapter that teaches: the server's, or a control (see `fedselectkd.py`)."
    )
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

    return Algorithm(  # The teacher `others` needs the number of examples in the average.
        client_update,
        averaging(hyper.aggregation, count=hyper.teacher == "others"),
        evaluates="local",
        shares=lambda server: Sent(server.adapter, server.memory),
        objective=objective,
    )


def teacher_of(teacher: Teacher, sent: Sent, state: ClientState, examples: int) -> Adapter:
    """The adapter from which a client with this number of examples distils in a round."""
    if teacher == "own":
        return state.adapter
    if teacher == "initial":
        return initial_of(sent, state)
    if teacher == "others" and TOTAL in sent.memory:
        return others_mean(sent.adapter, state.adapter, examples / int(sent.memory[TOTAL]))
    return sent.adapter


def initial_of(sent: Sent, state: ClientState) -> Adapter:
    """The first adapter of the training, which the server sends in a client's first round and the client stores."""
    return {name: state.memory.get(INITIAL + name, tensor) for name, tensor in sent.adapter.items()}


def others_mean(server: Adapter, own: Adapter, share: float) -> Adapter:
    """(w − p_i w_i) / (1 − p_i): the server's average without the client's own part.

    A client with all examples (p_i = 1), or with none, has no others, and the result is the server's adapter.
    """
    if not 0 < share < 1:
        return server
    return {name: (w - share * own[name]) / (1 - share) for name, w in server.items()}


def build(hyper: Hyperparameters) -> Algorithm:
    """Local training with distillation where the teacher's entropy is below tau; the server averages."""
    return assemble(hyper, Distillation(hyper.tau, hyper.weight, hyper.select, hyper.kd_direction))
