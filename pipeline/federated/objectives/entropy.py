"""A distribution over the vocabulary, and how sure it is.

The logarithm of a whole distribution is a second pass over tens of thousands of words a token, and is not needed: with
logits z and c = ln Σ exp z, ln q = z − c, so that Σ p ln q = Σ p z − c.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 16


def predicted(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q = softmax(z) (tokens, vocabulary), and c = ln Σ exp z (tokens,): the largest of z less that of ln q."""
    probability = logits.softmax(-1)
    return probability, logits.amax(-1) - probability.amax(-1).log()


def distribution(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    probability, total = predicted(logits)
    return probability, total - expectation(probability, logits)


def expectation(probability: Tensor, logits: Tensor) -> Tensor:
    """Σ p z over the vocabulary; 0 · −∞ is 0, as a teacher may rule a word out altogether.

    A few rows at a time: a fresh tensor of all of them costs more than the arithmetic.
    """
    parts = list(zip(torch.split(probability, ROWS), torch.split(logits, ROWS), strict=True))
    expected = torch.cat([(p * z).sum(-1) for p, z in parts])
    if not expected.isnan().any():  # else the rare case, which costs a pass over the vocabulary
        return expected
    return torch.cat([(p * z).nansum(-1) for p, z in parts])
