"""Distributions over the vocabulary and their entropies.

Logarithms of all probabilities would cost a second pass over the vocabulary. They are not needed: with logits z and
c = ln Σ exp z, ln q = z − c, so that Σ p ln q = Σ p z − c.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 16
"""Tokens per chunk in `expectation`."""


def softmax_and_log_sum(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q = softmax(z) (tokens, vocabulary), and c = ln Σ exp z = max z − ln max q (tokens,)."""
    probability = logits.softmax(-1)
    return probability, logits.amax(-1) - probability.amax(-1).log()


def distribution(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    probability, total = softmax_and_log_sum(logits)
    return probability, total - expectation(probability, logits)


def entropy(logits: Tensor, _targets: Tensor) -> Tensor:
    """The entropy of each prediction alone: logits (tokens, vocabulary) -> (tokens,)."""
    return distribution(logits)[1]


def expectation(probability: Tensor, logits: Tensor) -> Tensor:
    """Σ p z over the vocabulary, (tokens,); 0 · −∞ counts as 0, since a teacher may exclude a word.

    In chunks of a few tokens: allocating a tensor for all of them costs more than the arithmetic.
    """
    parts = list(zip(torch.split(probability, ROWS), torch.split(logits, ROWS), strict=True))
    expected = torch.cat([(p * z).sum(-1) for p, z in parts])
    if not expected.isnan().any():  # Otherwise, which is rare, a second pass is needed.
        return expected
    return torch.cat([(p * z).nansum(-1) for p, z in parts])
