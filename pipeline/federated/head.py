"""The language model's head and the loss on it, in chunks of positions.

Logits of a batch of 16 summaries over 49,152 words are 300 MB in fp32, as much to fill as to compute. The head
is frozen and the loss a sum over positions, so each chunk's logits live only until its gradient with respect to the
hidden states is known; one backward pass of the adapted layers then takes the gradients of all chunks at once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pipeline.federated.objectives.distillation import (
    Distillation,
    TokenLosses,
    cross_entropy,
    distribution,
    losses_and_gradient,
)

CHUNK = 128

Head = Callable[[Tensor], Tensor]


def backward_through_head(
    head: Head,
    hidden: Tensor,
    targets: Tensor,
    teacher: Tensor | None,
    how: Distillation | None,
    marks: Tensor | None = None,
) -> TokenLosses:
    """Loss of every position, and the gradient of their mean in the leaves that `hidden` hangs on.

    Args:
        head: hidden states -> fp32 logits, frozen.
        hidden: the student's (tokens, width), with a graph behind it.
        targets: (tokens,), no padding among them.
        teacher: the teacher's hidden states (tokens, width), or None for cross-entropy.
        how: what to distil; None with no teacher.
        marks: (tokens,), what `how` selects by besides the teacher's entropy; see `losses_and_gradient`.
    """
    leaf = hidden.detach()
    gradient = torch.empty_like(leaf)
    parts: list[TokenLosses] = []
    count = targets.shape[0]
    for start in range(0, count, CHUNK):
        chunk = slice(start, start + CHUNK)
        with torch.no_grad():
            guide = None if teacher is None else head(teacher[chunk])
        with torch.enable_grad():
            states = leaf[chunk].requires_grad_()
            logits = head(states)
        part, in_logits = losses_and_gradient(
            logits.detach(), targets[chunk], guide, how, None if marks is None else marks[chunk]
        )
        (gradient[chunk],) = torch.autograd.grad(logits, states, in_logits.div_(count))
        parts.append(part)
    torch.autograd.backward(hidden, gradient)
    return _joined(parts)


@torch.no_grad()
def cross_entropy_through_head(head: Head, hidden: Tensor, targets: Tensor) -> Tensor:
    """−ln q(y_t) of every position, without a gradient: (tokens, width), (tokens,) -> (tokens,)."""
    chunks = zip(torch.split(hidden, CHUNK), torch.split(targets, CHUNK), strict=True)
    return torch.cat([cross_entropy(head(states), wanted) for states, wanted in chunks])


@torch.no_grad()
def entropies_through_head(head: Head, hidden: Tensor) -> Tensor:
    """Entropy, in nats, of the distribution at each position: (tokens, width) -> (tokens,)."""
    return torch.cat([distribution(head(chunk))[1] for chunk in torch.split(hidden, CHUNK)])


def _joined(parts: list[TokenLosses]) -> TokenLosses:
    return TokenLosses(
        torch.cat([part.loss for part in parts]),
        torch.cat([part.distilled for part in parts]),
        torch.cat([part.entropy for part in parts]),
    )
