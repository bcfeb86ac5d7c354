"""AdaFedHardKD: each client distils from the shared adapter at nouns and verbs, whatever that adapter is sure of.

Feng et al., Section V-C, Fig. 12: s_t = 1 on every subword of a reference word that is tagged NOUN, PROPN or VERB
(auxiliaries are not), else 0.
"""

from __future__ import annotations

import math

from pipeline.corpora.tagging import nouns_and_verbs
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms.fedselectkd import Distilling, assemble
from pipeline.federated.objectives.distillation import Distillation


class Hyperparameters(Distilling):
    """λ in [0, 1], and the ablations."""


def build(hyper: Hyperparameters) -> Algorithm:
    how = Distillation(math.inf, hyper.weight, select="marked", direction=hyper.kd_direction)
    return assemble(hyper, how, marks=nouns_and_verbs)
