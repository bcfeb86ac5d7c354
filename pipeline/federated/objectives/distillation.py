"""Selective distillation: a client learns from the references, and from its teacher where the teacher is certain.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Eq. 6 (distillation), Eq. 7 (entropy of the teacher) and Eq. 8 (selection). q_g is the teacher's distribution under the
global adapter, q_l the student's under the local one. With s_t = 1[H(q_g,t) < τ] over the N target tokens of the batch,
without padding,

    L = (1/N) Σ_t [ (1 − λ s_t) · (−ln q_l(y_t)) + λ s_t · Σ_v q_g(v) (ln q_g(v) − ln q_l(v)) ]

    ∂L_t / ∂z = q_l − (1 − λ s_t) 1[y_t] − λ s_t q_g

Natural logarithm, full vocabulary, temperature 1, fp32. No gradient reaches the teacher. The divisor is always N, not
Σ s_t.

Ablations change s_t (`select`) or the direction of the divergence (`direction`). Eq. 6 is written KL(q_l, q_g), with

    ∂ KL(q_l ‖ q_g) / ∂z = q_l (ln q_l − ln q_g − KL)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from pipeline.federated.figures import NATS, SHARE, Declared
from pipeline.federated.objectives.cross_entropy import (
    distribution,
    expectation,
    reference_loss,
    softmax_and_log_sum,
    subtract_target,
)
from pipeline.federated.objectives.objective import ClientExamples, Extras, ItemLosses, Objective
from pipeline.federated.objectives.threshold import Threshold
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

Select = Literal["entropy", "inverse", "random"]
Direction = Literal["forward", "reverse"]
Mark = Callable[[Sequence[str]], Sequence[bool]]
"""The pieces of a summary -> for each of its tokens, whether it is marked."""

DRAWN_TOGETHER = 32
"""The number of consecutive tokens among which random ones are drawn. The sizes of the head's chunks are multiples of
it, so that all devices draw the same tokens."""
DISTILLED = "distilled"  # the name of the mask of distilled tokens


@dataclass(frozen=True)
class Distillation(Objective):
    """The objective with its hyperparameters.

    Attributes:
        threshold: τ (Eq. 8), an entropy in nats or a quantile.
        weight: λ in [0, 1], the weight of the divergence.
        select: the tokens to distil: those with H < τ (`entropy`), those with H ≥ τ (`inverse`), or, of each 32
            consecutive tokens, as many as have H < τ but drawn at random (`random`).
        direction: KL(q_g ‖ q_l) (`forward`) or KL(q_l ‖ q_g) (`reverse`).
        mark: selects tokens by their text instead of the teacher's entropy.
        teacher: the teacher's adapter; None until `with_teacher`.
    """

    threshold: Threshold
    weight: float
    select: Select = "entropy"
    direction: Direction = "forward"
    mark: Mark | None = None
    teacher: Adapter | None = None

    def with_teacher(self, teacher: Adapter) -> Distillation:
        """The same objective with this teacher."""
        return replace(self, teacher=teacher)

    @property
    def figures(self) -> Declared:
        return {"cross_entropy": NATS, "teacher_entropy": NATS, "tau": NATS, f"share_{DISTILLED}": SHARE}

    @property
    def constants(self) -> Mapping[str, float]:
        return {"tau": self.threshold.nats} if math.isfinite(self.threshold.nats) else {}

    def begin(self, data: ClientExamples) -> Distillation:
        """Convert τ to nats if it is a quantile of the teacher's entropies on the client's training tokens."""
        if (teacher := self.teacher) is None:
            raise ValueError("distillation needs a teacher; see `with_teacher`")
        return replace(self, threshold=self.threshold.in_nats(lambda: data.entropies(teacher)))

    def extras(self, data: ClientExamples, rng: Randomness, step: int, examples: Sequence[int]) -> Extras:
        """`marked` (tokens,), or `draw` (tokens,): numbers in [0, 1) by which random tokens are selected."""
        if self.mark is not None:
            marked = [torch.tensor(self.mark(data.pieces(i)), dtype=torch.bool) for i in examples]
            return {"marked": torch.cat(marked)}
        if self.select == "random":
            return {"draw": torch.rand(data.items(examples), generator=rng.generator(f"draw/{step}"))}
        return {}

    @torch.no_grad()
    def __call__(self, logits: Tensor, targets: Tensor, teacher: Tensor | None, extras: Extras) -> ItemLosses:
        assert teacher is not None, "distillation needs a teacher's logits"
        student, total = softmax_and_log_sum(logits)
        reference = reference_loss(logits, total, targets)
        probability, entropy = distribution(teacher)
        distilled = self.selected(entropy, extras)
        share = self.weight * distilled.float()
        if self.direction == "forward":
            # In place of q_l: allocating tensors over the vocabulary costs as much as the arithmetic.
            divergence = total - entropy - expectation(probability, logits)
            gradient = student.addcmul_(probability, -share[:, None])
        else:
            guide = teacher.log_softmax(-1).clamp(min=torch.finfo(torch.float32).min)
            divergence, gradient = _reversed(logits.log_softmax(-1), guide, share)
        return ItemLosses(
            loss=(1 - share) * reference + share * divergence,
            gradient=subtract_target(gradient, targets, share),
            figures={"teacher_entropy": entropy, "cross_entropy": reference},
            masks={DISTILLED: distilled},
        )

    def selected(self, entropy: Tensor, extras: Extras) -> Tensor:
        """s_t, boolean (tokens,), from the teacher's entropies (tokens,) in nats."""
        if self.mark is not None:
            return extras["marked"]
        assert self.threshold.quantile is None, "`begin` converts a quantile to nats"
        certain = entropy < self.threshold.nats
        if self.select == "entropy":
            return certain
        if self.select == "inverse":
            return ~certain
        parts = zip(torch.split(certain, DRAWN_TOGETHER), torch.split(extras["draw"], DRAWN_TOGETHER), strict=True)
        return torch.cat([_as_many(*part) for part in parts])


def _as_many(certain: Tensor, draw: Tensor) -> Tensor:
    """The tokens with the least numbers in `draw`, as many as there are certain ones: boolean (tokens,)."""
    selected = torch.zeros_like(certain)
    selected[draw.argsort()[: int(certain.sum())]] = True
    return selected


def _reversed(student: Tensor, teacher: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """KL(q_l ‖ q_g) from ln q_l and ln q_g, and the gradient of (1 − λ s) CE + λ s KL without its term in 1[y_t]."""
    probability = student.exp()
    ratio = student - teacher
    divergence = torch.linalg.vecdot(probability, ratio)
    turned = (ratio - divergence[:, None]) * share[:, None]
    return divergence, probability * (turned + (1 - share)[:, None])
