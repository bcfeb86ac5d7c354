"""A backbone's head: the loss of every target token and its gradient, and other measures, in chunks of positions.

Logits of a batch of 16 summaries over 49,152 words are 300 MB in fp32, and writing them takes as long as computing
them. The head is frozen and the loss is a sum over positions, so a chunk's logits are freed as soon as the gradient in
its hidden states is known. One backward pass through the adapted layers then uses the gradients of all chunks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from pipeline.federated.objectives.cross_entropy import Measure, cross_entropy
from pipeline.federated.objectives.objective import Extras, ItemLosses, Objective
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Head, Prefix, targets_of
from pipeline.model.entry import Entry

BATCH = 16  # examples per batch in `per_token`
Load = Callable[[Sequence[str]], list[Prefix]]
"""Keys of stored prefixes -> the prefixes, on the device that trains."""
CHUNKS = {"cpu": 32, "cuda": 1024}
"""Positions per chunk: the fewest that a processor multiplies at full speed, and enough to keep a GPU busy."""


class BackboneWithHead(Protocol):
    """A backbone and its head, as training and losses need them."""

    @property
    def device(self) -> torch.device: ...

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The final hidden states that predict the targets, of all examples in a row: (Σ T_i, width)."""

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """See `Head`."""

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Each token's surface text."""


class BackboneWithStates(BackboneWithHead, Protocol):
    """A backbone whose head shows what it reads; the plan refuses objectives of states for all others."""

    def states_and_logits(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The states before the head's last layer, then its logits: (items, width + classes)."""


def backward_through_head(
    head: Head,
    hidden: Tensor,
    targets: Tensor,
    objective: Objective,
    teacher: Tensor | None = None,
    extras: Extras | None = None,
    divisor: int | None = None,
) -> ItemLosses:
    """The loss of every position; adds the gradient of their mean to the leaves of the graph of `hidden`.

    Args:
        head: frozen, hidden states -> fp32 logits; see `Head`.
        hidden: the student's hidden states (tokens, width), with their graph.
        targets: (tokens,), without padding.
        teacher: the teacher's hidden states (tokens, width), if the objective has a teacher.
        extras: further inputs of the objective, each (tokens,); see `Objective.extras`.
        divisor: what the sum of losses is divided by, in place of the number of positions.

    Returns:
        Losses, figures and masks per position; `gradient` is the mean's, in the hidden states, (tokens, width).
    """
    leaf = hidden.detach()
    gradient = torch.empty_like(leaf)
    parts: list[ItemLosses] = []
    count = len(targets)
    size = count if objective.states else CHUNKS[hidden.device.type]
    for start in range(0, count, size):
        chunk = slice(start, start + size)
        with torch.no_grad():
            teacher_logits = None if teacher is None else head(teacher[chunk], targets[chunk])
        with torch.enable_grad():
            states = leaf[chunk].requires_grad_()
            logits = head(states, targets[chunk])
        own = {name: values[chunk] for name, values in (extras or {}).items()}
        part = objective(logits.detach(), targets[chunk], teacher_logits, own)
        (gradient[chunk],) = torch.autograd.grad(logits, states, part.gradient)
        parts.append(part)
    torch.autograd.backward(hidden, gradient.div_(divisor or count))
    return ItemLosses(
        torch.cat([part.loss for part in parts]),
        gradient,
        _joined([part.figures for part in parts]),
        _joined([part.masks for part in parts]),
    )


@torch.no_grad()
def through_head(head: Head, hidden: Tensor, targets: Tensor, measure: Measure = cross_entropy) -> Tensor:
    """A measure of every position, without a gradient: (tokens, width), (tokens,) -> (tokens,)."""
    size = CHUNKS[hidden.device.type]
    chunks = zip(torch.split(hidden, size), torch.split(targets, size), strict=True)
    return torch.cat([measure(head(states, wanted), wanted) for states, wanted in chunks])


def per_token(
    backbone: BackboneWithHead, load: Load, entries: Sequence[Entry], adapter: Adapter, measure: Measure = cross_entropy
) -> list[Tensor]:
    """The loss of every target token in nats, or another measure: a tensor (T_i,) per example.

    Examples of similar length share a batch.
    """
    results: dict[int, Tensor] = {}
    adapter = on_device(adapter, backbone.device)
    by_length = sorted(range(len(entries)), key=lambda i: entries[i].tokens)
    for at in range(0, len(entries), BATCH):
        chosen = by_length[at : at + BATCH]
        prefixes = load([entries[i].key for i in chosen])
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, adapter)
        found = through_head(backbone.head, hidden, targets_of(prefixes), measure).cpu()
        results |= dict(zip(chosen, torch.split(found, [entries[i].tokens for i in chosen]), strict=True))
    return [results[i] for i in range(len(entries))]


def _joined(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
