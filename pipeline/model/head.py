"""The language model's head and the loss on it, in chunks of positions.

Logits of a batch of 16 summaries over 49,152 words are 300 MB in fp32, as much to fill as to compute. The head
is frozen and the loss a sum over positions, so each chunk's logits live only until its gradient with respect to the
hidden states is known; one backward pass of the adapted layers then takes the gradients of all chunks at once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pipeline.federated.distillation import Distillation, TokenLosses, cross_entropy, distribution, token_losses

CHUNK = 128

Head = Callable[[Tensor], Tensor]


def backward_through_head(
    head: Head, hidden: Tensor, targets: Tensor, teacher: Tensor | None, how: Distillation | None
) -> TokenLosses:
    """Loss of every position, and the gradient of their mean in the leaves that `hidden` hangs on.

    Args:
        head: hidden states -> fp32 logits, frozen.
        hidden: the student's (tokens, width), with a graph behind it.
        targets: (tokens,), no padding among them.
        teacher: the teacher's hidden states (tokens, width), or None for cross-entropy.
        how: what to distil; None with no teacher.
    """
    leaf = hidden.detach()
    gradient = torch.empty_like(leaf)
    parts: list[TokenLosses] = []
    count = targets.shape[0]
    for start in range(0, count, CHUNK):
        chunk = slice(start, start + CHUNK)
        with torch.enable_grad():
            states = leaf[chunk].requires_grad_()
            part = _losses(head, states, targets[chunk], None if teacher is None else teacher[chunk], how)
            (gradient[chunk],) = torch.autograd.grad(part.loss.sum() / count, states)
        parts.append(TokenLosses(part.loss.detach(), part.distilled, part.entropy))
    torch.autograd.backward(hidden, gradient)
    return _joined(parts)


@torch.no_grad()
def losses_through_head(
    head: Head, hidden: Tensor, targets: Tensor, teacher: Tensor | None = None, how: Distillation | None = None
) -> TokenLosses:
    """The same losses without a gradient."""
    chunks = [slice(start, start + CHUNK) for start in range(0, targets.shape[0], CHUNK)]
    return _joined([_losses(head, hidden[c], targets[c], None if teacher is None else teacher[c], how) for c in chunks])


@torch.no_grad()
def teacher_entropies(head: Head, hidden: Tensor) -> Tensor:
    """Entropy, in nats, of the distribution at each position: (tokens, width) -> (tokens,)."""
    return torch.cat([distribution(head(chunk))[1] for chunk in torch.split(hidden, CHUNK)])


def _losses(
    head: Head, states: Tensor, targets: Tensor, teacher: Tensor | None, how: Distillation | None
) -> TokenLosses:
    logits = head(states)
    if teacher is None or how is None:
        loss = cross_entropy(logits, targets)
        return TokenLosses(loss, torch.zeros_like(targets, dtype=torch.bool), torch.full_like(loss, torch.nan))
    with torch.no_grad():
        teacher_logits = head(teacher)
    return token_losses(logits, teacher_logits, targets, how)


def _joined(parts: list[TokenLosses]) -> TokenLosses:
    return TokenLosses(
        torch.cat([part.loss for part in parts]),
        torch.cat([part.distilled for part in parts]),
        torch.cat([part.entropy for part in parts]).detach(),
    )
