"""Eq. 8 of Feng et al., written plainly for autograd: what the closed form is tested and timed against.

Nothing that trains imports it; see `pipeline.federated.objectives.distillation` for the notation.
"""

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from pipeline.federated.objectives.distillation import Distillation


def token_losses(student_logits: Tensor, teacher_logits: Tensor, targets: Tensor, how: Distillation) -> Tensor:
    """Eq. 8, token by token, from whole logits; no gradient reaches the teacher.

    Args:
        student_logits, teacher_logits: (tokens, vocabulary).
        targets: (tokens,), none of them padding.
        how: of its `select`, entropy alone.
    """
    student = student_logits.float().log_softmax(-1)
    with torch.no_grad():
        teacher = teacher_logits.float().log_softmax(-1)
        entropy = -(teacher.exp() * teacher.clamp(min=torch.finfo(torch.float32).min)).sum(-1)
        share = how.weight * (entropy < how.threshold.nats).float()
    if how.direction == "forward":
        divergence = (teacher.exp() * (teacher - student)).sum(-1)
    else:
        divergence = (student.exp() * (student - teacher)).sum(-1)
    reference = nll_loss(student, targets, reduction="none")
    return (1 - share) * reference + share * divergence
