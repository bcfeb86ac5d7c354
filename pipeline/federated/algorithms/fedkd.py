"""AdaFedKD: each client distils from the shared adapter at every word.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Section III-C2, Eq. 6: AdaFedSelectKD without the selection, s_t = 1 for all t.
"""

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms.fedselectkd import DistillationKnobs, assemble
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.threshold import EVERY_TOKEN

Hyperparameters = DistillationKnobs


def build(hyper: Hyperparameters) -> Algorithm:
    """AdaFedSelectKD with every token selected."""
    return assemble(hyper, Distillation(EVERY_TOKEN, hyper.weight, direction=hyper.kd_direction))
