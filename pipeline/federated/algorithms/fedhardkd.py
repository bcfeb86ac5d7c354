"""AdaFedHardKD: each client distils from the shared adapter at nouns and verbs, regardless of its certainty.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Section V-C, Fig. 12: s_t = 1 on every subword of a reference word with the tag NOUN, PROPN or VERB (not AUX), else 0.
"""

from dataclasses import replace

from pipeline.corpora.tagging import nouns_and_verbs
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms.fedselectkd import DistillationKnobs, assemble
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.threshold import EVERY_TOKEN

Hyperparameters = DistillationKnobs


def build(hyper: Hyperparameters) -> Algorithm:
    """AdaFedSelectKD with every token of a noun or verb selected, and no other."""
    objective = Distillation(EVERY_TOKEN, hyper.weight, direction=hyper.kd_direction, mark=nouns_and_verbs)
    return replace(assemble(hyper, objective), marks_words=True)
