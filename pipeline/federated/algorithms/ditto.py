"""Ditto: each client also trains a personal adapter, with a penalty on its distance from the shared one.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1. A round:

    w_i ← client i trains w on F_i(w)                          (sent, averaged as in AdaFedAvg)
    v_i ← client i trains v_i on F_i(v) + (μ/2) ‖v − w‖²       (stored, evaluated)

The paper's λ is μ here. Each client trains twice per round, on the same batches.
"""

from dataclasses import replace

from pydantic import Field

from pipeline.federated.algorithm import Algorithm, ClientData, ClientResult, ClientState, Knobs, Sent, Update
from pipeline.federated.algorithms.fedavg import averaging
from pipeline.federated.algorithms.fedprox import proximal
from pipeline.federated.randomness import Randomness


class Hyperparameters(Knobs):
    """See Algorithm 1."""

    mu: float = Field(ge=0, description="μ (their λ), the weight of the squared distance from the shared adapter.")


def build(hyper: Hyperparameters) -> Algorithm:
    """Two trainings a client a round; the server averages the shared adapter alone."""

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        shared = data.fit(sent.adapter, rng)
        personal = data.fit(state.adapter, rng, pull=proximal(hyper.mu, sent.adapter))
        # The personal adapter is evaluated, so the loss is its own. Steps and seconds are of both trainings.
        steps = shared.trace.steps + personal.trace.steps
        trace = replace(personal.trace, steps=steps, seconds=shared.trace.seconds + personal.trace.seconds)
        return ClientState(personal.adapter), Update(shared.adapter, data.examples, steps), trace

    return Algorithm(client_update, averaging(), evaluates="local", passes=2)
