"""The language model's head and the loss on it, in chunks of positions.

Logits of a batch of 16 summaries over 49,152 words are 300 MB in fp32, as much to fill as to compute. The head
is frozen and the loss a sum over positions, so each chunk's logits live only until its gradient with respect to the
hidden states is known; one backward pass of the adapted layers then takes the gradients of all chunks at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from pipeline.federated.objectives.cross_entropy import cross_entropy
from pipeline.federated.objectives.entropy import distribution
from pipeline.federated.objectives.objective import ItemLosses, Objective
from pipeline.model.backbone import Head

CHUNKS = {"cpu": 32, "cuda": 1024}
"""Positions at once: as few as a processor multiplies at full speed, as many as keep a GPU busy."""


def backward_through_head(
    head: Head,
    hidden: Tensor,
    targets: Tensor,
    objective: Objective,
    teacher: Tensor | None = None,
    beside: Mapping[str, Tensor] | None = None,
) -> ItemLosses:
    """Loss of every position, and the gradient of their mean in the leaves that `hidden` hangs on.

    Args:
        head: hidden states -> fp32 logits, frozen; see `Head`.
        hidden: the student's (tokens, width), with a graph behind it.
        targets: (tokens,), no padding among them.
        teacher: the teacher's hidden states (tokens, width), where the objective has a teacher.
        beside: what the objective needs besides, each (tokens,); see `Objective.beside`.

    Returns:
        Losses, figures and masks; the gradient is that in the hidden states, (tokens, width).
    """
    leaf = hidden.detach()
    gradient = torch.empty_like(leaf)
    parts: list[ItemLosses] = []
    count = targets.shape[0]
    size = CHUNKS[hidden.device.type]
    for start in range(0, count, size):
        chunk = slice(start, start + size)
        with torch.no_grad():
            guide = None if teacher is None else head(teacher[chunk], targets[chunk])
        with torch.enable_grad():
            states = leaf[chunk].requires_grad_()
            logits = head(states, targets[chunk])
        here = {name: values[chunk] for name, values in (beside or {}).items()}
        part = objective(logits.detach(), targets[chunk], guide, here)
        (gradient[chunk],) = torch.autograd.grad(logits, states, part.gradient)
        parts.append(part)
    torch.autograd.backward(hidden, gradient.div_(count))
    return ItemLosses(
        torch.cat([part.loss for part in parts]),
        gradient,
        _joined([part.figures for part in parts]),
        _joined([part.masks for part in parts]),
    )


@torch.no_grad()
def cross_entropy_through_head(head: Head, hidden: Tensor, targets: Tensor) -> Tensor:
    """−ln q(y_t) of every position, without a gradient: (tokens, width), (tokens,) -> (tokens,)."""
    chunks = _chunks(hidden, targets)
    return torch.cat([cross_entropy(head(states, wanted), wanted) for states, wanted in chunks])


@torch.no_grad()
def entropies_through_head(head: Head, hidden: Tensor, targets: Tensor) -> Tensor:
    """Entropy, in nats, of the distribution at each position: (tokens, width), (tokens,) -> (tokens,)."""
    chunks = _chunks(hidden, targets)
    return torch.cat([distribution(head(states, wanted))[1] for states, wanted in chunks])


def _chunks(hidden: Tensor, targets: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    size = CHUNKS[hidden.device.type]
    return zip(torch.split(hidden, size), torch.split(targets, size), strict=True)


def _joined(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
