"""Selective distillation: a client learns from the references, and from its teacher where that is sure.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Eq. 6 (distillation), Eq. 7 (entropy of the teacher) and Eq. 8 (selection). q_g is the teacher's distribution under the
global adapter, q_l the student's under the local one. With s_t = 1[H(q_g,t) < τ] over the N target tokens of the
whole batch that are not padding,

    L = (1/N) Σ_t [ (1 − λ s_t) · (−ln q_l(y_t)) + λ s_t · Σ_v q_g(v) (ln q_g(v) − ln q_l(v)) ]

    ∂L_t / ∂z = q_l − (1 − λ s_t) 1[y_t] − λ s_t q_g

Natural logarithm, full vocabulary, temperature 1, fp32; no gradient reaches the teacher; N never shrinks to Σ s_t.

Ablations change s_t (`select`), or turn the divergence round (`direction`): Eq. 6 is written KL(q_l, q_g), with

    ∂ KL(q_l ‖ q_g) / ∂z = q_l (ln q_l − ln q_g − KL)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from pipeline.federated.objectives.cross_entropy import less_the_target, reference_loss
from pipeline.federated.objectives.entropy import distribution, expectation, predicted
from pipeline.federated.objectives.objective import ItemLosses, Objective, Pupil
from pipeline.federated.objectives.threshold import Threshold
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Select = Literal["entropy", "inverse", "random"]
Direction = Literal["forward", "reverse"]
Mark = Callable[[Sequence[str]], Sequence[bool]]
"""The pieces of a summary -> which of its tokens are marked."""

DRAWN_TOGETHER = 32
"""Tokens among which random ones are drawn: every size of the head's chunks is a multiple, so that all devices draw
alike."""
DISTILLED = "distilled"
"""The mask: which tokens were distilled."""


@dataclass(frozen=True)
class Distillation(Objective):
    """How a client distils: from which teacher, below which entropy τ (Eq. 8), with which weight λ of the KL term.

    `select` says which tokens: those the teacher is sure of (`entropy`: H < τ), those it is not (`inverse`: H ≥ τ), or
    as many as it is sure of but drawn at random (`random`), of each 32 tokens in a row. `mark` picks
    them beforehand, whatever the teacher says.
    """

    threshold: Threshold
    weight: float
    select: Select = "entropy"
    direction: Direction = "forward"
    mark: Mark | None = None
    guide: Adapter | None = None

    def taught_by(self, teacher: Adapter) -> Distillation:
        return replace(self, guide=teacher)

    @property
    def teacher(self) -> Adapter | None:
        return self.guide

    @property
    def constants(self) -> Mapping[str, float]:
        return {"tau": self.threshold.nats} if math.isfinite(self.threshold.nats) else {}

    def begin(self, pupil: Pupil) -> Distillation:
        """τ in nats, where it is a quantile of the teacher's entropies on the client's own training tokens."""
        if self.guide is None:
            raise ValueError("distillation needs a teacher; see `taught_by`")
        guide = self.guide
        return replace(self, threshold=self.threshold.in_nats(lambda: pupil.entropies(guide)))

    def beside(self, pupil: Pupil, rng: Randomness, step: int, examples: Sequence[int]) -> Mapping[str, Tensor]:
        """Marks, or numbers in [0, 1) by which tokens are drawn."""
        if self.mark is not None:
            marked = [torch.tensor(self.mark(pupil.pieces(i)), dtype=torch.bool) for i in examples]
            return {"marked": torch.cat(marked)}
        if self.select == "random":
            return {"draw": torch.rand(pupil.items(examples), generator=rng.generator(f"draw/{step}"))}
        return {}

    @torch.no_grad()
    def __call__(
        self, logits: Tensor, targets: Tensor, teacher_logits: Tensor | None, beside: Mapping[str, Tensor]
    ) -> ItemLosses:
        assert teacher_logits is not None, "distillation needs a teacher's logits"
        student, total = predicted(logits)
        reference = reference_loss(logits, total, targets)
        probability, entropy = distribution(teacher_logits)
        distilled = self.selected(entropy, beside)
        share = self.weight * distilled.float()
        if self.direction == "forward":
            # q_l is used up: fresh tensors of a whole vocabulary cost as much as the arithmetic.
            divergence = total - entropy - expectation(probability, logits)
            gradient = student.addcmul_(probability, -share[:, None])
        else:
            teacher = teacher_logits.log_softmax(-1).clamp(min=torch.finfo(torch.float32).min)
            divergence, gradient = _reversed(logits.log_softmax(-1), teacher, share)
        return ItemLosses(
            loss=(1 - share) * reference + share * divergence,
            gradient=less_the_target(gradient, targets, share),
            figures={"teacher_entropy": entropy, "cross_entropy": reference},
            masks={DISTILLED: distilled},
        )

    def selected(self, entropy: Tensor, beside: Mapping[str, Tensor]) -> Tensor:
        """s_t: which tokens are distilled, boolean (tokens,)."""
        if self.mark is not None:
            return beside["marked"]
        assert self.threshold.quantile is None, "a quantile is turned into nats by `begin`"
        sure = entropy < self.threshold.nats
        if self.select == "entropy":
            return sure
        if self.select == "inverse":
            return ~sure
        pieces = zip(torch.split(sure, DRAWN_TOGETHER), torch.split(beside["draw"], DRAWN_TOGETHER), strict=True)
        return torch.cat([_as_many(own, draw) for own, draw in pieces])


def _as_many(sure: Tensor, draw: Tensor) -> Tensor:
    """As many tokens as there are sure ones, those with the least numbers."""
    drawn = torch.zeros_like(sure)
    drawn[draw.argsort()[: int(sure.sum())]] = True
    return drawn


def _reversed(student: Tensor, teacher: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """KL(q_l ‖ q_g) from ln q_l and ln q_g, and the gradient of (1 − λ s) CE + λ s KL without its 1[y_t]."""
    probability = student.exp()
    ratio = student - teacher
    divergence = torch.linalg.vecdot(probability, ratio)
    turned = (ratio - divergence[:, None]) * share[:, None]
    return divergence, probability * (turned + (1 - share)[:, None])
