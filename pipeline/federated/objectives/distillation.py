"""The losses of a client.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Eq. 6 (distillation), Eq. 7 (entropy of the teacher) and Eq. 8 (selection). q_g is the teacher's distribution under the
global adapter, q_l the student's under the local one. With s_t = 1[H(q_g,t) < τ] over the N target tokens of the
whole batch that are not padding,

    L = (1/N) Σ_t [ (1 − λ s_t) · (−ln q_l(y_t)) + λ s_t · Σ_v q_g(v) (ln q_g(v) − ln q_l(v)) ].

Natural logarithm, full vocabulary, temperature 1, fp32; no gradient reaches the teacher; N never shrinks to Σ s_t.

Ablations change s_t (`select`), or turn the divergence round (`direction`): Eq. 6 is written KL(q_l, q_g).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Select = Literal["entropy", "inverse", "random", "marked"]
Direction = Literal["forward", "reverse"]


@dataclass(frozen=True)
class Distillation:
    """How a client distils: τ in nats (Eq. 8; infinite distils every token) and λ, the weight of the KL term.

    `select` says which tokens: those the teacher is sure of (`entropy`: H < τ), those it is not (`inverse`: H ≥ τ), as
    many as it is sure of but drawn at random (`random`), or those marked beforehand (`marked`).
    `quantile` in (0, 1) takes τ from the teacher's entropies on the client's own training tokens, anew each round.
    """

    tau: float
    weight: float
    select: Select = "entropy"
    direction: Direction = "forward"
    quantile: float | None = None


@dataclass(frozen=True)
class TokenLosses:
    """One batch's tokens: each (tokens,)."""

    loss: Tensor
    distilled: Tensor
    entropy: Tensor


def cross_entropy(student_logits: Tensor, targets: Tensor) -> Tensor:
    """−ln q_l(y_t) for each token: logits (tokens, vocabulary), targets (tokens,) -> (tokens,)."""
    return reference_loss(student_logits.float().log_softmax(-1), targets)


def distribution(teacher_logits: Tensor) -> tuple[Tensor, Tensor]:
    """q_g (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    log_probability = teacher_logits.float().log_softmax(-1)
    probability = log_probability.exp()
    return probability, -expectation(probability, log_probability)


@torch.no_grad()
def losses_and_gradient(
    student_logits: Tensor,
    targets: Tensor,
    teacher_logits: Tensor | None,
    how: Distillation | None,
    marks: Tensor | None = None,
) -> tuple[TokenLosses, Tensor]:
    """Eq. 8 token by token, or cross-entropy where there is no teacher, and the gradient of each in its own logits.

    The gradient has a closed form, which costs a fraction of automatic differentiation over a whole vocabulary:

        ∂L_t / ∂z = q_l − (1 − λ s_t) 1[y_t] − λ s_t q_g
        ∂ KL(q_l ‖ q_g) / ∂z = q_l (ln q_l − ln q_g − KL)                                     (direction: reverse)

    Args:
        student_logits, teacher_logits: (tokens, vocabulary).
        targets: (tokens,), none of them padding.
        marks: (tokens,): booleans for `select: marked`, numbers in [0, 1) for `select: random`.
    """
    student = student_logits.float().log_softmax(-1)
    reference = reference_loss(student, targets)
    if teacher_logits is None or how is None:
        nothing, unknown = torch.zeros_like(targets, dtype=torch.bool), torch.full_like(reference, torch.nan)
        share = torch.zeros_like(reference)
        return TokenLosses(reference, nothing, unknown), _less_the_target(student.exp_(), targets, share)
    probability, entropy = distribution(teacher_logits)
    distilled = selected(entropy, how, marks)
    share = how.weight * distilled.float()
    if how.direction == "forward":
        divergence, gradient = _forward(student, probability, entropy, share)
    else:
        teacher = teacher_logits.float().log_softmax(-1).clamp(min=torch.finfo(torch.float32).min)
        divergence, gradient = _reversed(student, teacher, share)
    loss = (1 - share) * reference + share * divergence
    return TokenLosses(loss, distilled, entropy), _less_the_target(gradient, targets, share)


def selected(entropy: Tensor, how: Distillation, marks: Tensor | None = None) -> Tensor:
    """s_t: which tokens are distilled, boolean (tokens,)."""
    sure = entropy < how.tau
    if how.select == "entropy":
        return sure
    if how.select == "inverse":
        return ~sure
    if marks is None:
        raise ValueError(f"select: {how.select} needs marks")
    if how.select == "marked":
        return marks.bool()
    drawn = torch.zeros_like(sure)
    drawn[marks.argsort()[: int(sure.sum())]] = True
    return drawn


def _forward(student: Tensor, probability: Tensor, entropy: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """KL(q_g ‖ q_l) from ln q_l, q_g and H(q_g), and the gradient of (1 − λ s) CE + λ s KL without its 1[y_t].

    It uses both up: fresh tensors of a whole vocabulary cost as much as the arithmetic.
    """
    divergence = -entropy - expectation(probability, student)
    return divergence, student.exp_().sub_(probability.mul_(share[:, None]))


def _reversed(student: Tensor, teacher: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """KL(q_l ‖ q_g) from ln q_l and ln q_g, and the gradient of (1 − λ s) CE + λ s KL without its 1[y_t]."""
    probability = student.exp()
    ratio = student - teacher
    divergence = torch.einsum("tv,tv->t", probability, ratio)
    turned = (ratio - divergence[:, None]) * share[:, None]
    return divergence, probability * (turned + (1 - share)[:, None])


def _less_the_target(gradient: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """The gradient with its − (1 − λ s) 1[y_t], in place."""
    return gradient.scatter_add_(-1, targets[:, None], (share - 1)[:, None])


def reference_loss(student: Tensor, targets: Tensor) -> Tensor:
    """−ln q_l(y_t) for each token, from ln q_l."""
    return -student.gather(-1, targets[:, None])[:, 0]


def expectation(probability: Tensor, log_probability: Tensor) -> Tensor:
    """Σ p ln q over the vocabulary; 0 · ln 0 is 0, as a teacher may rule a word out altogether."""
    expected = torch.einsum("tv,tv->t", probability, log_probability)
    if not expected.isnan().any():  # else the rare case, which costs a pass over the vocabulary
        return expected
    return torch.einsum("tv,tv->t", probability, log_probability.clamp(min=torch.finfo(torch.float32).min))
