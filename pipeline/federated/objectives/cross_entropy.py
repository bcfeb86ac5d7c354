"""Cross-entropy, −ln q(y) for each target y, with the gradient ∂/∂z = q − 1[y]; and the entropy of a distribution.

Logarithms of all probabilities would cost a second pass over the vocabulary. They are not needed: with logits z and
c = ln Σ exp z, ln q = z − c, so that Σ p ln q = Σ p z − c.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.federated.objectives.objective import Extras, ItemLosses, Objective

ROWS = 16  # tokens per chunk in `expectation`


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Cross-entropy with the references, in nats; it has no hyperparameters."""

    @torch.no_grad()
    def __call__(self, logits: Tensor, targets: Tensor, teacher: Tensor | None, extras: Extras) -> ItemLosses:
        del teacher, extras
        student, total = softmax_and_log_sum(logits)
        loss = reference_loss(logits, total, targets)
        return ItemLosses(loss, subtract_target(student, targets, torch.zeros_like(loss)))


CROSS_ENTROPY = CrossEntropy()

Measure = Callable[[Tensor, Tensor], Tensor]
"""Logits (tokens, vocabulary) and targets (tokens,) -> a number for each token: `cross_entropy`, or `entropy`."""


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−ln q(y_t) for each token: logits (tokens, vocabulary), targets (tokens,) -> (tokens,)."""
    return reference_loss(logits, softmax_and_log_sum(logits)[1], targets)


def reference_loss(logits: Tensor, total: Tensor, targets: Tensor) -> Tensor:
    """−ln q(y_t) for each token, from logits z and `total` = ln Σ exp z: (tokens,)."""
    return total - logits.gather(-1, targets[:, None])[:, 0]


def subtract_target(gradient: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """Subtract (1 − share) 1[y_t] from the gradient, in place; `share` (tokens,) weights the teacher's term."""
    return gradient.scatter_add_(-1, targets[:, None], (share - 1)[:, None])


def softmax_and_log_sum(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q = softmax(z) (tokens, vocabulary), and c = ln Σ exp z = max z − ln max q (tokens,)."""
    probability = logits.softmax(-1)
    return probability, logits.amax(-1) - probability.amax(-1).log()


def distribution(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    probability, total = softmax_and_log_sum(logits)
    return probability, total - expectation(probability, logits)


def entropy(logits: Tensor, _targets: Tensor) -> Tensor:
    """The entropy of each prediction alone: logits (tokens, vocabulary) -> (tokens,)."""
    return distribution(logits)[1]


def expectation(probability: Tensor, logits: Tensor) -> Tensor:
    """Σ p z over the vocabulary, (tokens,); 0 · −∞ counts as 0, since a teacher may exclude a word.

    In chunks of a few tokens: allocating a tensor for all of them costs more than the arithmetic.
    """
    parts = list(zip(torch.split(probability, ROWS), torch.split(logits, ROWS), strict=True))
    expected = torch.cat([(p * z).sum(-1) for p, z in parts])
    if not expected.isnan().any():  # Otherwise, which is rare, a second pass is needed.
        return expected
    return torch.cat([(p * z).nansum(-1) for p, z in parts])
