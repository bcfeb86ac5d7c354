"""The interface of an objective, the loss that a client's local training minimizes.

An objective receives a batch's logits and targets, and its teacher's logits if it has a teacher. It returns each item's
loss, the gradient of that loss in the item's logits, and named figures and masks. It reads no files, no adapter except
its teacher's, and no other client's data.

Objectives compute their gradients in closed form, which costs a fraction of automatic differentiation over a large
vocabulary. Tests compare them with autograd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from pipeline.federated.figures import Declared
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Extras = Mapping[str, Tensor]  # further inputs of an objective, by names that it chooses: name -> (items,)


@dataclass(frozen=True)
class ItemLosses:
    """The losses of a batch, item by item.

    Attributes:
        loss: (items,), in nats.
        gradient: (items, classes), of each item's loss in its own logits.
        figures: declared name -> (items,); a round reports their means.
        masks: name -> boolean (items,); the client saves them, and a round reports their shares as `share_NAME`.
    """

    loss: Tensor
    gradient: Tensor
    figures: Mapping[str, Tensor] = field(default_factory=dict)
    masks: Mapping[str, Tensor] = field(default_factory=dict)


class ClientExamples(Protocol):
    """A client's training examples, as an objective sees them."""

    def entropies(self, adapter: Adapter) -> Tensor:
        """The entropy of an adapter's prediction of every training item, in nats: (items,)."""

    def pieces(self, example: int) -> Sequence[str]:
        """The surface text of each target token of a training example."""

    def items(self, examples: Sequence[int]) -> int:
        """The number of target tokens of these training examples together."""

    def progress(self, number: int, step: int) -> float:
        """How far a training is at a step of a round: (t / T) (e / E) (j / τ), of rounds, epochs and batches."""

    @property
    def train(self) -> Sequence[object]:
        """The training examples."""

    @property
    def batches(self) -> int:
        """τ, the optimizer steps of an epoch."""


class Objective(Protocol):
    """A loss and its gradient, item by item; docs/methods.md writes one."""

    @property
    def states(self) -> bool:
        """Whether `logits` begin with the states before the head, (items, width + classes), of a batch in one part."""
        return False

    @property
    def teacher(self) -> Adapter | None:
        """The frozen adapter of the teacher; None if the objective has no teacher."""
        return None

    @property
    def figures(self) -> Declared:
        """The figures that may leave a client: those of `ItemLosses`, `constants`, and a `share_MASK` for each mask."""
        return {}

    @property
    def constants(self) -> Mapping[str, float]:
        """Figures that are the same for all items of a round."""
        return {}

    def begin(self, data: ClientExamples) -> Objective:
        """The objective of one round, with what depends on the client's data filled in."""
        del data
        return self

    def extras(self, data: ClientExamples, rng: Randomness, step: int, examples: Sequence[int]) -> Extras:
        """Further inputs of `__call__` for a batch of these training examples."""
        del data, rng, step, examples
        return {}

    def __call__(self, logits: Tensor, targets: Tensor, teacher: Tensor | None, extras: Extras) -> ItemLosses:
        """Compute losses and gradients of a part of a batch.

        Args:
            logits: the student's, (items, classes).
            targets: (items,), without padding.
            teacher: the teacher's logits, (items, classes); None if there is no teacher.
            extras: what `extras` returned, of these items.
        """
        ...
