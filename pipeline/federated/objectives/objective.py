"""What a client's local training makes small.

An objective is shown a batch's logits and targets, and a teacher's logits where it names a teacher. It answers with
each item's loss, the gradient of that loss in the item's own logits, and named figures and masks. It sees no file, no
adapter but its teacher's, and no other client.

A gradient in closed form costs a fraction of automatic differentiation over a whole vocabulary, so an objective states
its own; a test holds it against autograd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter


@dataclass(frozen=True)
class ItemLosses:
    """A batch, item by item.

    `loss` (items,); `gradient` (items, classes): of each item's loss in its own logits; `figures` name -> (items,), to
    be averaged; `masks` name -> boolean (items,), to be kept.
    """

    loss: Tensor
    gradient: Tensor
    figures: Mapping[str, Tensor] = field(default_factory=dict)
    masks: Mapping[str, Tensor] = field(default_factory=dict)


class Pupil(Protocol):
    """What an objective may ask of the client that trains, before a round or a batch."""

    def entropies(self, adapter: Adapter) -> Tensor:
        """The entropy, in nats, of an adapter's prediction of every training item: (items,)."""

    def pieces(self, example: int) -> Sequence[str]:
        """The surface text of each target token of a training example."""

    def items(self, examples: Sequence[int]) -> int:
        """How many target tokens these training examples have together."""


class Objective(Protocol):
    """Loss and gradient of a batch, item by item.

    The squared error of the probability of class 0 is one, L = (q_0 − 1[y = 0])²: for logits (0, 0) and target 0,
    q_0 = 1/2, L = 1/4 and, with ∂q_0/∂z = (q_0 q_1, −q_0 q_1), the gradient is 2 (q_0 − 1) (1/4, −1/4) = (−1/4, 1/4).

    >>> import torch
    >>> class Brier(Objective):
    ...     def __call__(self, logits, targets, teacher_logits=None, beside=None):
    ...         q = logits.softmax(-1)
    ...         error = q[:, 0] - (targets == 0).float()
    ...         slope = 2 * error * q[:, 0] * q[:, 1]
    ...         return ItemLosses(error**2, torch.stack([slope, -slope], 1), figures={"certainty": q.amax(-1)})
    >>> found = Brier()(torch.zeros(1, 2), torch.tensor([0]))
    >>> found.loss, found.gradient
    (tensor([0.2500]), tensor([[-0.2500,  0.2500]]))
    """

    @property
    def teacher(self) -> Adapter | None:
        """The frozen adapter whose logits stand beside the student's; None: there is none."""
        return None

    @property
    def constants(self) -> Mapping[str, float]:
        """Figures that hold for the whole round."""
        return {}

    def begin(self, pupil: Pupil) -> Objective:
        """The objective of one round, with what depends on the client's data filled in."""
        del pupil
        return self

    def beside(self, pupil: Pupil, rng: Randomness, step: int, examples: Sequence[int]) -> Mapping[str, Tensor]:
        """What a batch of these training examples needs besides logits and targets: name -> (items,)."""
        del pupil, rng, step, examples
        return {}

    def __call__(
        self, logits: Tensor, targets: Tensor, teacher_logits: Tensor | None, beside: Mapping[str, Tensor]
    ) -> ItemLosses:
        """Judge a part of a batch.

        Args:
            logits, teacher_logits: (items, classes); the teacher's are None where there is none.
            targets: (items,), none of them padding.
            beside: what `beside` gave, of these items.
        """
        ...
