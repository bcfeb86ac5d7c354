"""Cross-entropy: −ln q(y) for each target y, with the gradient ∂/∂z = q − 1[y]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.federated.objectives.entropy import softmax_and_log_sum
from pipeline.federated.objectives.objective import Extras, ItemLosses, Objective


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
