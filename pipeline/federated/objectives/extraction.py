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
class Extraction(Objective):
    """The loss of one round.

    Attributes:
        limits: Q̄ and ε̄; None: every batch trains.
        heads: of the last round's clients; None in the first round.
        share: λ.
        data: whether the data loss trains; without it the pass is L_pm's own.
        released: Q and L_pm as in the authors' code.
        before: as released: Q of the round's last batch, which stays where a prefix does not reach λ.
    """

    limits: tuple[float, float] | None
    heads: Heads | None = None
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
