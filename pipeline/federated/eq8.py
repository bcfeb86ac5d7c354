"""Eq. 8 of Feng et al., written plainly for autograd: what the closed form is tested and timed against.

Nothing that trains imports it; see `distillation` for the notation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.federated.objectives.distillation import (
    Distillation,
    TokenLosses,
    distribution,
    expectation,
    reference_loss,
)


def token_losses(student_logits: Tensor, teacher_logits: Tensor, targets: Tensor, how: Distillation) -> TokenLosses:
    """Eq. 8, token by token, from whole logits.

    Args:
        student_logits, teacher_logits: (tokens, vocabulary).
        targets: (tokens,), none of them padding.
    """
    with torch.no_grad():
        probability, entropy = distribution(teacher_logits)
    distilled = entropy < how.tau
    share = how.weight * distilled.float()
    student = student_logits.float().log_softmax(-1)
    divergence = -entropy - expectation(probability, student)
    return TokenLosses((1 - share) * reference_loss(student, targets) + share * divergence, distilled, entropy)


def selective_kd_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    targets: Tensor,
    *,
    tau: float,
    weight: float,
    ignore_index: int = -100,
) -> tuple[Tensor, Tensor]:
    """The selective distillation loss of one batch.

    Args:
        student_logits, teacher_logits: (batch, length, vocabulary); the teacher's get no gradient.
        targets: (batch, length); `ignore_index` marks padding.
        tau: the entropy, in nats, below which (strictly) a token is distilled.
        weight: λ.

    Returns:
        The scalar loss, a mean over the N tokens that are not padding (0 if there are none), and a boolean
        (batch, length), true where distillation was used.
    """
    real = targets != ignore_index
    tokens = token_losses(student_logits[real], teacher_logits[real], targets[real], Distillation(tau, weight))
    distilled = torch.zeros_like(real)
    distilled[real] = tokens.distilled
    return tokens.loss.sum() / real.sum().clamp(min=1), distilled
