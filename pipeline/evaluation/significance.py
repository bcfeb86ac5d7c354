"""Paired tests between two runs: signs of whole meetings are flipped.

Under the null hypothesis the two runs are exchangeable on every meeting, so the sign of a meeting's summed difference
carries nothing. With R random flips, p = (1 + #{|Δ*| ≥ |Δ|}) / (1 + R), Δ being the mean over clients. p-values of one
family are adjusted by Holm's step-down procedure (Holm, 1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.evaluation.intervals import Clusters

DETECTABLE = 2.8
"""Standard errors that a difference must have to be found at 5% with 80% power."""


def sign_flip(clients: Mapping[str, Clusters], samples: int, seed: int = 0) -> float:
    """The two-sided p-value of the mean difference; each client's clusters hold summed differences a meeting.

    A meeting that several clients share has one sign.
    """
    rng = np.random.default_rng([seed, 1])
    observed = float(np.mean([c.ratio() for c in clients.values()]))
    flipped = np.zeros(samples)
    drawn: dict[str, NDArray[np.int64]] = {}
    for client in clients.values():
        new = [name for name in client.names if name not in drawn]
        drawn |= dict(zip(new, (rng.integers(0, 2, (samples, len(new))) * 2 - 1).T, strict=True))
        signs = np.stack([drawn[name] for name in client.names], axis=1)
        flipped += signs @ client.numerator / client.denominator.sum() / len(clients)
    # Equal sums in another order differ in the last bits.
    extreme = np.abs(flipped) >= abs(observed) * (1 - 1e-12)
    return float((1 + extreme.sum()) / (1 + samples))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: p_(k) · (m − k + 1), made monotone, at most 1."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = running
    return adjusted
