"""Eq. 8 of Feng et al., written plainly for autograd: what the closed form is tested and timed against.

Nothing that trains imports it; see `pipeline.federated.objectives.distillation` for the notation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.federated.objectives.cross_entropy import reference_loss
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.entropy import distribution, expectation


def token_losses(student_logits: Tensor, teacher_logits: Tensor, targets: Tensor, how: Distillation) -> Tensor:
    """Eq. 8, token by token, from whole logits; no gradient reaches the teacher.

    Args:
        student_logits, teacher_logits: (tokens, vocabulary).
        targets: (tokens,), none of them padding.
        how: of its `select`, entropy alone.
    """
    student = student_logits.float().log_softmax(-1)
    with torch.no_grad():
        probability, entropy = distribution(teacher_logits)
        share = how.weight * (entropy < how.threshold.nats).float()
    if how.direction == "forward":
        divergence = -entropy - expectation(probability, student)
    else:
        teacher = teacher_logits.detach().float().log_softmax(-1)
        divergence = (student.exp() * (student - teacher)).sum(-1)
    return (1 - share) * reference_loss(student, targets) + share * divergence
