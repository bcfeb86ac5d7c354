"""AdaCentralized: one model on the pooled data of all clients, which a federation may not do.

The paper's upper reference (Feng et al., Section IV-B). One round is one pass over all examples, so rounds are equal
to the federated methods' in examples seen, not in steps. Each client keeps its own best round of the one model.
"""

from __future__ import annotations

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.single import client_update, server_update


class Hyperparameters(Knobs):
    """None of its own."""


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, server_update, evaluates="local", travels="nothing", pooled=True)
