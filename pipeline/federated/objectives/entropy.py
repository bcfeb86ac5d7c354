"""A distribution over the vocabulary, and how sure it is."""

from __future__ import annotations

import torch
from torch import Tensor


def distribution(logits: Tensor) -> tuple[Tensor, Tensor]:
    """q (tokens, vocabulary) and its entropy in nats (tokens,), Eq. 7."""
    log_probability = logits.float().log_softmax(-1)
    probability = log_probability.exp()
    return probability, -expectation(probability, log_probability)


def expectation(probability: Tensor, log_probability: Tensor) -> Tensor:
    """Σ p ln q over the vocabulary; 0 · ln 0 is 0, as a teacher may rule a word out altogether."""
    expected = torch.einsum("tv,tv->t", probability, log_probability)
    if not expected.isnan().any():  # else the rare case, which costs a pass over the vocabulary
        return expected
    return torch.einsum("tv,tv->t", probability, log_probability.clamp(min=torch.finfo(torch.float32).min))
