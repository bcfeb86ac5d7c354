"""Cross-entropy: −ln q(y) of each target, with ∂/∂z = q − 1[y]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.federated.objectives.entropy import predicted
from pipeline.federated.objectives.objective import ItemLosses, Objective


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Learning from the references alone; natural logarithm, in fp32."""

    @torch.no_grad()
    def __call__(
        self,
        logits: Tensor,
        targets: Tensor,
        teacher_logits: Tensor | None = None,
        beside: Mapping[str, Tensor] | None = None,
    ) -> ItemLosses:
        del teacher_logits, beside
        student, total = predicted(logits)
        loss = reference_loss(logits, total, targets)
        return ItemLosses(loss, less_the_target(student, targets, torch.zeros_like(loss)))


CROSS_ENTROPY = CrossEntropy()


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−ln q(y_t) for each token: logits (tokens, vocabulary), targets (tokens,) -> (tokens,)."""
    return reference_loss(logits, predicted(logits)[1], targets)


def reference_loss(logits: Tensor, total: Tensor, targets: Tensor) -> Tensor:
    """−ln q(y_t) for each token, from z and ln Σ exp z."""
    return total - logits.gather(-1, targets[:, None])[:, 0]


def less_the_target(gradient: Tensor, targets: Tensor, share: Tensor) -> Tensor:
    """Subtract (1 − share) 1[y_t] from the gradient, in place; `share` (tokens,) is the teacher's part of the loss."""
    return gradient.scatter_add_(-1, targets[:, None], (share - 1)[:, None])
