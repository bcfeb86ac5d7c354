"""Is the teacher better where it is surer? Tokens of references by decile of the teacher's entropy.

Selection rests on it: AdaFedSelectKD distils where the teacher's entropy is low, which helps only if the teacher there
gives the reference a higher probability than the student does.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    Args:
        entropy: of the teacher, in nats, (tokens,).
        teacher, student: ln q(y) of each reference token, (tokens,).
    """
    order = torch.argsort(entropy, stable=True)
    gain = (teacher - student)[order].double()
    return [
        Decile(float(part.mean()), float((own > 0).double().mean()), float(own.mean()))
        for part, own in zip(_tenths(entropy[order].double()), _tenths(gain), strict=True)
    ]


def _tenths(values: Tensor) -> Sequence[Tensor]:
    return torch.tensor_split(values, PARTS)
