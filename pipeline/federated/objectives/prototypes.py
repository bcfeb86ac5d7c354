"""Terms of class prototypes, the mean states of a class's units: FedSum's L_po and the loss of FedProto.

Ma et al., FedSum, Eq. 3 and 5. Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients",
AAAI 2022, Eq. 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import ClientExamples, Extras, ItemLosses, Objective
from pipeline.federated.randomness import Randomness


@dataclass(frozen=True)
class NearPrototypes(Objective):
    """Cross-entropy, and FedProto's term λ_P Σ_ξ ‖P̄^ξ − P^ξ(batch)‖².

    Attributes:
        shared: P̄ (2, width).
        there: which of its rows are known (2,); none in the first round.
        weight: λ_P.
    """

    shared: Tensor
    there: Tensor
    weight: float
    states = True

    def extras(self, data: ClientExamples, rng: Randomness, step: int, examples: Sequence[int]) -> Extras:
        """The number of documents of the batch, by which a sum of losses is divided, at each unit."""
        del rng, step
        return {"documents": torch.full((data.items(examples),), len(examples))}

    def __call__(self, logits: Tensor, targets: Tensor, teacher: Tensor | None, extras: Extras) -> ItemLosses:
        """`logits` are the states, then the two logits: (units, width + 2)."""
        states, losses = logits[:, :-2], CROSS_ENTROPY(logits[:, -2:], targets, None, {})
        gradient = int(extras["documents"][0]) * self._gradient(states, targets)
        return ItemLosses(losses.loss, torch.cat([gradient, losses.gradient], 1))

    def _gradient(self, states: Tensor, targets: Tensor) -> Tensor:
        """The term's gradient in the states of a batch, (units, width)."""
        means, counts = class_means(states, targets)
        shared, there = self.shared.to(states.device), self.there.to(states.device)
        pulls = 2 * self.weight * (means - shared) * there[:, None] / counts.clamp(min=1)[:, None]
        return pulls[targets]


def class_means(states: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The mean state of each of two classes (2, width), 0 without units, and the numbers of units (2,)."""
    counts = torch.bincount(classes, minlength=2).to(states.dtype)
    sums = states.new_zeros(2, states.shape[1]).index_add_(0, classes, states)
    return sums / counts.clamp(min=1)[:, None], counts


def prototype_gradient(states: Tensor, logits: Tensor, labels: Tensor, shared: Tensor) -> tuple[float, Tensor]:
    """L_po (Eq. 5), and its gradient in all units' states: Σ_ξ ‖P̄^ξ − P_c^ξ‖ − ‖P_p¹ − P_p⁰‖.

    A class without units and a norm of 0 give no term. `shared` has P̄⁰ and P̄¹ (2, width).
    """
    predicted = logits.argmax(-1)
    own, own_counts = class_means(states, labels)
    guess, guess_counts = class_means(states, predicted)
    apart = own - shared
    norms = apart.norm(dim=1)
    there = (own_counts > 0) & (norms > 0)
    pulls = torch.where(there[:, None], apart / norms[:, None] / own_counts[:, None], torch.zeros_like(apart))
    loss, gradient = float(norms[there].sum()), pulls[labels]
    between = guess[1] - guess[0]
    if bool((guess_counts > 0).all()) and float(between.norm()) > 0:
        direction = torch.stack([between, -between]) / between.norm()
        loss -= float(between.norm())
        gradient = gradient + (direction / guess_counts[:, None])[predicted]
    return loss, gradient
