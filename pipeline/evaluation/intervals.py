"""95% intervals that resample meetings within a client, since queries of one meeting are not independent.

Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 14 (BCa). A figure is a ratio of sums over
meetings (a mean over examples, or over tokens), averaged over clients:

    θ = (1/C) Σ_c [ Σ_m a_cm / Σ_m b_cm ]

Meetings are drawn with replacement within each client, 10,000 times unless told otherwise. BCa corrects for bias and
skew; where it does not exist (no spread, or one meeting a client) the percentile interval stands in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]
LEVEL = 0.95


@dataclass(frozen=True)
class Clusters:
    """One client: a numerator and a denominator a meeting, each (meetings,)."""

    numerator: Array
    denominator: Array

    @classmethod
    def of(cls, meetings: Sequence[str], numerators: Sequence[float], denominators: Sequence[float]) -> Clusters:
        """Sum examples by meeting, meetings in order of name."""
        names, index = np.unique(np.asarray(meetings), return_inverse=True)
        top, bottom = np.zeros(len(names)), np.zeros(len(names))
        np.add.at(top, index, np.asarray(numerators, dtype=float))
        np.add.at(bottom, index, np.asarray(denominators, dtype=float))
        return cls(top, bottom)

    def ratio(self) -> float:
        return float(self.numerator.sum() / self.denominator.sum())


@dataclass(frozen=True)
class Interval:
    """A figure with its 95% interval and bootstrap standard error."""

    value: float
    low: float
    high: float
    standard_error: float


def bootstrap(clients: Mapping[str, Clusters], samples: int, seed: int = 0) -> Interval:
    """The mean over clients, with its interval; of one client, that client's figure."""
    value = float(np.mean([c.ratio() for c in clients.values()]))
    draws = np.mean([_draws(name, c, samples, seed) for name, c in clients.items()], axis=0)
    error = float(draws.std(ddof=1))
    if error < 1e-12:
        return Interval(value, value, value, error)
    low, high = np.quantile(draws, _levels(value, draws, _acceleration(clients)))
    return Interval(value, float(low), float(high), error)


def _draws(name: str, client: Clusters, samples: int, seed: int) -> Array:
    """The client's figure in every resample, (samples,): the same meetings are drawn for every run and metric."""
    rng = np.random.default_rng([seed, *name.encode("utf-8")])
    picks = rng.integers(0, len(client.numerator), (samples, len(client.numerator)))
    ratio: Array = client.numerator[picks].sum(1) / client.denominator[picks].sum(1)
    return ratio


def _acceleration(clients: Mapping[str, Clusters]) -> float | None:
    """BCa's correction for skew, from the figure with each meeting left out in turn; None where nothing moves it.

    For several samples: Σ_c Σ_m (U_cm / n_c)³ / 6 (Σ_c Σ_m (U_cm / n_c)²)^{3/2}, where U_cm = (n_c − 1)(θ_c· − θ_cm)
    is taken around the client's own mean. A client's only meeting cannot be left out.
    """
    squares = cubes = 0.0
    for client in clients.values():
        count = len(client.numerator)
        if count < 2:
            continue
        top = client.numerator.sum() - client.numerator
        bottom = client.denominator.sum() - client.denominator
        left_out = top / bottom / len(clients)
        influence = (count - 1) * (left_out.mean() - left_out) / count
        squares += float((influence**2).sum())
        cubes += float((influence**3).sum())
    return cubes / (6 * squares**1.5) if squares**1.5 > 0 else None


def _levels(value: float, draws: Array, acceleration: float | None) -> tuple[float, float]:
    """The quantiles of the draws that bound the BCa interval, or the plain ones."""
    tail = (1 - LEVEL) / 2
    below = float(np.mean(draws < value) + 0.5 * np.mean(draws == value))
    if not 0 < below < 1 or acceleration is None:
        return tail, 1 - tail
    bias = norm.ppf(below)

    def adjusted(level: float) -> float:
        z = bias + norm.ppf(level)
        return float(norm.cdf(bias + z / (1 - acceleration * z)))

    return adjusted(tail), adjusted(1 - tail)
