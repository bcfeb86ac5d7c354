"""AdaCentralized: one model on the pooled data of all clients, which a federation may not do.

The upper reference of Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting
Summarization", Section IV-B:

    w ← train w on the examples of all clients

A round passes over all examples, so it equals a federated round in examples, not in optimizer steps. Each client saves
its own best round of the one model.
"""

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.single import build as build_single

Hyperparameters = Knobs  # there are none


def build(hyper: Hyperparameters) -> Algorithm:
    """Training of one pooled client, with AdaSingle's parts."""
    return build_single(hyper, pooled=True)
