"""Ditto: a personal adapter beside the shared one, held near it; personalization without distillation.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1. A round:

    w_i ← train w                                              (sent, averaged as in AdaFedAvg)
    v_i ← train v_i on F_i(v) + (μ/2) ‖v − w‖²                 (kept, evaluated)

Their λ is μ here. It trains twice a round; both trainings see the same batches.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, ClientUpdate, Knobs, Sent, Trace, Update
from pipeline.federated.algorithms.fedavg import averaging
from pipeline.federated.algorithms.fedprox import proximal
from pipeline.federated.randomness import Randomness


class Hyperparameters(Knobs):
    """μ, how strongly the personal adapter is held near the shared one."""

    mu: float = Field(ge=0)


def training(mu: float) -> ClientUpdate:
    """The client's half of a round."""

    def client_update(
        sent: Sent, state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update, Trace]:
        shared = data.fit(sent.adapter, rng)
        personal = data.fit(state.adapter, rng, pull=proximal(mu, sent.adapter))
        # What is evaluated is the personal adapter, so the loss is its own; time and steps are both trainings'.
        trace = replace(
            personal.trace,
            steps=shared.trace.steps + personal.trace.steps,
            seconds=shared.trace.seconds + personal.trace.seconds,
        )
        return ClientState(personal.adapter), Update(shared.adapter, data.examples, trace.steps), trace

    return client_update


def build(hyper: Hyperparameters) -> Algorithm:
    return Algorithm(training(hyper.mu), averaging("weighted"), evaluates="local", passes=2)
