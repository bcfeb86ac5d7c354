"""Is the teacher better where it is surer? Tokens of references by decile of the teacher's entropy.

Selection rests on it: AdaFedSelectKD distils where the teacher's entropy is low, which helps only if the teacher there
gives the reference a higher probability than the student does.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

PARTS = 10


@dataclass(frozen=True)
class Decile:
    """A tenth of the tokens: their mean teacher entropy in nats, the share on which the teacher gives the reference a
    higher probability than the student, and by how many nats on average (teacher − student, of ln q)."""

    entropy: float
    teacher_better: float
    gain: float


def deciles(entropy: Tensor, teacher: Tensor, student: Tensor) -> list[Decile]:
    """Ten groups of equal size (to one token), the surest first.

    `entropy`: of the teacher, in nats. `teacher`, `student`: ln q(y) of each reference token; all (tokens,).
    """
    order = torch.argsort(entropy, stable=True)
    sure, gains = (torch.tensor_split(own[order].double(), PARTS) for own in (entropy, teacher - student))
    pairs = zip(sure, gains, strict=True)
    return [Decile(float(h.mean()), float((gain > 0).double().mean()), float(gain.mean())) for h, gain in pairs]
