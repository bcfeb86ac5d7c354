"""The losses of a client.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Eq. 6 (distillation), Eq. 7 (entropy of the teacher) and Eq. 8 (selection). q_g is the teacher's distribution under the
global adapter, q_l the student's under the local one. With s_t = 1[H(q_g,t) < τ] over the N target tokens of the
whole batch that are not padding,

    L = (1/N) Σ_t [ (1 − λ s_t) · (−ln q_l(y_t)) + λ s_t · Σ_v q_g(v) (ln q_g(v) − ln q_l(v)) ].

Natural logarithm, full vocabulary, temperature 1, fp32; no gradient reaches the teacher; N never shrinks to Σ s_t.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Distillation:
    """How a client distils: τ in nats (Eq. 8; infinite distils every token) and λ, the weight of the KL term."""

    tau: float
    weight: float


@dataclass(frozen=True)
class TokenLosses:
    """One batch's tokens: each (tokens,)."""

    loss: Tensor
    distilled: Tensor
    entropy: Tensor


def cross_entropy(student_logits: Tensor, targets: Tensor) -> Tensor:
    """−ln q_l(y_t) for each token: logits (tokens, vocabulary), targets (tokens,) -> (tokens,)."""
    return -student_logits.float().log_softmax(-1).gather(-1, targets[:, None])[:, 0]


def distribution(teacher_logits: Tensor) -> tuple[Tensor, Tensor]:
    """q_g (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    log_probability = teacher_logits.float().log_softmax(-1)
    probability = log_probability.exp()
    # 0 · ln 0 is 0: a teacher may rule a word out altogether.
    return probability, -torch.where(probability > 0, probability * log_probability, 0.0).sum(-1)


def token_losses(student_logits: Tensor, teacher_logits: Tensor, targets: Tensor, how: Distillation) -> TokenLosses:
    """Eq. 8, token by token.

    Args:
        student_logits, teacher_logits: (tokens, vocabulary).
        targets: (tokens,), none of them padding.
    """
    student = student_logits.float().log_softmax(-1)
    with torch.no_grad():
        probability, entropy = distribution(teacher_logits)
        distilled = entropy < how.tau
        share = how.weight * distilled.float()
    reference = -student.gather(-1, targets[:, None])[:, 0]
    divergence = -entropy - torch.where(probability > 0, probability * student, 0.0).sum(-1)
    return TokenLosses((1 - share) * reference + share * divergence, distilled, entropy)


def selective_kd_loss(
    student_logits: Tensor,
    teacher_logits: Tensor,
    targets: Tensor,
    *,
    tau: float,
    weight: float,
    ignore_index: int = -100,
) -> tuple[Tensor, Tensor]:
    """The selective distillation loss of one batch (Eq. 8).

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
