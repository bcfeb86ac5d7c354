"""AdaFedHardKD: each client distils from the shared adapter at nouns and verbs, whatever that adapter is sure of.

Feng et al., Section V-C, Fig. 12: s_t = 1 on every subword of a reference word that is tagged NOUN, PROPN or VERB
(auxiliaries are not), else 0.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.corpora.tagging import nouns_and_verbs
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms.fedselectkd import Distilling, assemble
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.threshold import EVERY_TOKEN


class Hyperparameters(Distilling):
    """λ in [0, 1], and the ablations."""


def build(hyper: Hyperparameters) -> Algorithm:
    objective = Distillation(EVERY_TOKEN, hyper.weight, direction=hyper.kd_direction, mark=nouns_and_verbs)
    return replace(assemble(hyper, objective), marks_words=True)
