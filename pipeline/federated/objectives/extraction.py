"""FedSum's losses of a batch of documents: the data loss, which an easy batch skips, and that of others' heads.

Ma et al., FedSum, Eq. 2, 6 and 7, Algorithm 2. Its code is Li-Evan/FedSum @ 80d5f46, FederatedSum.py ("FS" below).
A batch has B documents; LD (units,) are their labels, LM the units' cross-entropy, H (units, width) their states.

    Q  the least column up to which more than a share λ of the batch's key units (LD = 1) lies
    ε  Σ LD ∘ LM / B
    A batch is normal where Q ≤ Q̄ and ε ≤ ε̄, else prime. A normal one is skipped with probability ρ.
    L_pm = Σ_p ζ_p Σ BCE(σ(ω̃_p H + b̃_p), LD) / B, by other clients' masked heads; its gradient moves θ alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from pipeline.federated.figures import NATS, SHARE, Bounds, Declared
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import ClientExamples, Extras, ItemLosses, Objective
from pipeline.federated.randomness import Randomness

FIRST_KEY = 1  # as released: Q of a first batch whose prefix does not reach the share
SHARES = ("share_prime", "share_skipped")  # of the units that are in such batches
READ_AGAIN = 8  # as released: the documents of a batch that L_pm reads (FS 379)


@dataclass(frozen=True)
class Heads:
    """Other clients' masked heads (heads, width + 1), the bias last, and their weights ζ (heads,)."""

    weights: Tensor
    zeta: Tensor

    def gradient(self, states: Tensor, labels: Tensor) -> Tensor:
        """∂/∂H of B · L_pm: Σ_p ζ_p (σ(z_p) − y) ω̃_p, (units, width)."""
        weights, zeta = self.weights.to(states.device), self.zeta.to(states.device)
        over = torch.sigmoid(states @ weights[:, :-1].T + weights[:, -1]) - labels[:, None]
        return (over * zeta) @ weights[:, :-1]


@dataclass(frozen=True)
class Prototypes:
    """FedProto's term λ_P Σ_ξ ‖P̄^ξ − P^ξ(batch)‖² (Tan et al., AAAI 2022, Eq. 8).

    `shared`: P̄ (2, width); `there`: which of its rows are known (2,); `weight`: λ_P.
    """

    shared: Tensor
    there: Tensor
    weight: float

    def gradient(self, states: Tensor, targets: Tensor) -> Tensor:
        """In the states of a batch, (units, width)."""
        means, counts = class_means(states, targets)
        shared, there = self.shared.to(states.device), self.there.to(states.device)
        pulls = 2 * self.weight * (means - shared) * there[:, None] / counts.clamp(min=1)[:, None]
        return pulls[targets]


@dataclass(frozen=True)
class Extraction(Objective):
    """The loss of one round.

    Attributes:
        limits: Q̄ and ε̄; None: every batch trains.
        heads: of the last round's clients; None in the first round.
        prototypes: of FedProto, of which none is known in its first round; None in FedSum.
        share: λ.
        data: whether the data loss trains; without it the pass is L_pm's own.
        released: Q and L_pm as in the authors' code.
        before: as released: Q of the round's last batch, which stays where a prefix does not reach λ.
    """

    limits: tuple[float, float] | None
    heads: Heads | None = None
    prototypes: Prototypes | None = None
    share: float = 0.5
    data: bool = True
    released: bool = False
    before: list[int] = field(default_factory=lambda: [FIRST_KEY])
    states = True
    figures: ClassVar[Declared] = {"key_column": Bounds(0.0), "key_loss": NATS} | dict.fromkeys(SHARES, SHARE)

    def extras(self, data: ClientExamples, rng: Randomness, step: int, examples: Sequence[int]) -> Extras:
        """Each unit's document and column, from 1; of the batch ρ, a draw, and the weight that makes sums its means."""
        sizes = [data.items([i]) for i in examples]
        document = torch.repeat_interleave(torch.tensor(sizes))
        column = torch.cat([torch.arange(1, size + 1) for size in sizes])
        draw = torch.rand(1, generator=rng.generator(f"skip/{step}"))
        weight = data.items(range(len(data.train))) / (data.batches * len(column))
        return {
            "document": document,
            "column": column,
            "rho": torch.full((len(column),), data.progress(rng.round, step)),
            "draw": draw.expand(len(column)),
            "weight": torch.full((len(column),), weight),
        }

    @torch.no_grad()
    def __call__(self, logits: Tensor, targets: Tensor, teacher: Tensor | None, extras: Extras) -> ItemLosses:
        """`logits` are the states, then the two logits: (units, width + 2)."""
        states, logits = logits[:, :-2], logits[:, -2:]
        losses, labels = CROSS_ENTROPY(logits, targets, None, {}), targets.float()
        document = extras["document"]
        documents = int(document[-1]) + 1
        key = self._key_column(extras["column"], targets)
        key_loss = float((losses.loss * labels).sum()) / documents
        normal = self.limits is not None and key <= self.limits[0] and key_loss <= self.limits[1]
        skipped = bool(normal and extras["draw"][0] <= extras["rho"][0])
        gradient = torch.zeros_like(states)
        if self.heads is not None:
            gradient = self.heads.gradient(states, labels)
            if self.released:
                gradient *= (document < READ_AGAIN)[:, None] / len(self.heads.zeta)
        if self.prototypes is not None:
            gradient = documents * self.prototypes.gradient(states, targets)
        trained = losses.gradient * float(self.data and not skipped)
        every = torch.ones(len(targets), dtype=torch.bool, device=targets.device)
        return ItemLosses(
            losses.loss,
            torch.cat([gradient, trained], 1),
            figures={"key_column": key * extras["weight"], "key_loss": key_loss * extras["weight"]},
            masks={"prime": every & (not normal), "skipped": every & skipped},
        )

    def _key_column(self, column: Tensor, targets: Tensor) -> int:
        """Q; without key units the last column."""
        counts = torch.bincount(column, weights=targets.double(), minlength=int(column.max()) + 1)[1:]
        reached = (counts.cumsum(0) > self.share * counts.sum()).nonzero()
        if not self.released:
            return int(reached[0]) + 1 if len(reached) else len(counts)
        if len(reached) and int(reached[0]) + 1 < len(counts):  # its prefix ends before the last column (FS 298-302)
            self.before[0] = int(reached[0]) + 1
        return self.before[0]


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
