"""Ditto: a personal adapter beside the shared one, held near it; personalization without distillation.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1. A round:

    w_i ← train w                                              (sent, averaged as in AdaFedAvg)
    v_i ← train v_i on F_i(v) + (μ/2) ‖v − w‖²                 (kept, evaluated)

Their λ is μ here. It trains twice a round; both trainings see the same batches.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from pipeline.federated.algorithm import Algorithm, ClientData, ClientState, ClientUpdate, Knobs, Randomness, Update
from pipeline.federated.algorithms.fedavg import averaging
from pipeline.federated.algorithms.fedprox import proximal
from pipeline.model.adapter import Adapter


class Hyperparameters(Knobs):
    """μ, how strongly the personal adapter is held near the shared one."""

    mu: float = Field(ge=0)


def training(mu: float) -> ClientUpdate:
    """The client's half of a round."""

    def client_update(
        shared: Adapter, state: ClientState, data: ClientData, rng: Randomness
    ) -> tuple[ClientState, Update]:
        sent = data.fit(shared, rng)
        personal = data.fit(state.adapter, rng, pull=proximal(mu, shared))
        # What is evaluated is the personal adapter, so the loss is its own; time and steps are both trainings'.
        trace = replace(
            personal.trace,
            steps=sent.trace.steps + personal.trace.steps,
            seconds=sent.trace.seconds + personal.trace.seconds,
        )
        return ClientState(personal.adapter), Update(sent.adapter, data.examples, trace)

    return client_update


def build(hyper: Hyperparameters) -> Algorithm:
    return Algorithm(training(hyper.mu), averaging("weighted"), evaluates="local", passes=2)
