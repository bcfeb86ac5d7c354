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
    return _reference(student_logits.float().log_softmax(-1), targets)


def distribution(teacher_logits: Tensor) -> tuple[Tensor, Tensor]:
    """q_g (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    log_probability = teacher_logits.float().log_softmax(-1)
    probability = log_probability.exp()
    return probability, -_expected(probability, log_probability)


def token_losses(student_logits: Tensor, teacher_logits: Tensor, targets: Tensor, how: Distillation) -> TokenLosses:
    """Eq. 8, token by token.

    Args:
        student_logits, teacher_logits: (tokens, vocabulary).
        targets: (tokens,), none of them padding.
    """
    with torch.no_grad():
        probability, entropy = distribution(teacher_logits)
    losses, _ = _selective(student_logits.float().log_softmax(-1), probability, entropy, targets, how)
    return losses


@torch.no_grad()
def losses_and_gradient(
    student_logits: Tensor, targets: Tensor, teacher_logits: Tensor | None, how: Distillation | None
) -> tuple[TokenLosses, Tensor]:
    """The same losses, or cross-entropy where there is no teacher, and the gradient of each in its own logits.

    It has a closed form, which costs a fraction of what automatic differentiation does over a whole vocabulary:

        ∂L_t / ∂z = q_l − (1 − λ s_t) 1[y_t] − λ s_t q_g
    """
    student = student_logits.float().log_softmax(-1)
    if teacher_logits is None or how is None:
        reference = _reference(student, targets)
        losses = TokenLosses(
            reference, torch.zeros_like(targets, dtype=torch.bool), torch.full_like(reference, torch.nan)
        )
        share = torch.zeros_like(reference)
        gradient = student.exp_()
    else:
        probability, entropy = distribution(teacher_logits)
        losses, share = _selective(student, probability, entropy, targets, how)
        gradient = student.exp_().sub_(probability.mul_(share[:, None]))
    return losses, gradient.scatter_add_(-1, targets[:, None], (share - 1)[:, None])


def _selective(
    student: Tensor, probability: Tensor, entropy: Tensor, targets: Tensor, how: Distillation
) -> tuple[TokenLosses, Tensor]:
    """Eq. 8 from ln q_l (tokens, vocabulary), q_g and its entropy; and each token's λ s_t."""
    distilled = entropy < how.tau
    share = how.weight * distilled.float()
    divergence = -entropy - _expected(probability, student)
    return TokenLosses((1 - share) * _reference(student, targets) + share * divergence, distilled, entropy), share


def _reference(student: Tensor, targets: Tensor) -> Tensor:
    return -student.gather(-1, targets[:, None])[:, 0]


def _expected(probability: Tensor, log_probability: Tensor) -> Tensor:
    """Σ p ln q over the vocabulary; 0 · ln 0 is 0, as a teacher may rule a word out altogether."""
    expected = torch.einsum("tv,tv->t", probability, log_probability)
    if not expected.isnan().any():  # else the rare case, which costs a pass over the vocabulary
        return expected
    return torch.einsum("tv,tv->t", probability, log_probability.clamp(min=torch.finfo(torch.float32).min))


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
