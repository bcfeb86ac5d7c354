"""95% intervals that resample meetings within a client, since queries of one meeting are not independent.

Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 14 (BCa). A figure is a ratio of sums over
meetings (a mean over examples, or over tokens), averaged over clients:

    θ = (1/C) Σ_c [ Σ_m a_cm / Σ_m b_cm ]

Meetings are drawn with replacement within each client, 10,000 times unless told otherwise; where clients share
meetings (queries of one meeting dealt out to several), a meeting is drawn once for all of them. BCa corrects for bias
and skew; where it does not exist (no spread, or one meeting a client) the percentile interval stands in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]
LEVEL = 0.95


@dataclass(frozen=True)
class Samples:
    """How many times meetings are drawn anew for an interval, and their signs flipped for a test."""

    bootstrap: int
    permutation: int


@dataclass(frozen=True)
class Clusters:
    """One client: a numerator and a denominator a meeting, each (meetings,), and the meetings' names."""

    numerator: Array
    denominator: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, meetings: Sequence[str], numerators: Sequence[float], denominators: Sequence[float]) -> Clusters:
        """Sum examples by meeting, meetings in order of name."""
        names, index = np.unique(np.asarray(meetings), return_inverse=True)
        top, bottom = np.zeros(len(names)), np.zeros(len(names))
        np.add.at(top, index, np.asarray(numerators, dtype=float))
        np.add.at(bottom, index, np.asarray(denominators, dtype=float))
        return cls(top, bottom, tuple(map(str, names)))

    def ratio(self) -> float:
        return float(self.numerator.sum() / self.denominator.sum())


@dataclass(frozen=True)
class Interval:
    """A figure with its 95% interval and bootstrap standard error."""

    value: float
    low: float
    high: float
    standard_error: float

    def rounded(self, digits: int) -> dict[str, float]:
        """As files have it."""
        return {name: round(value, digits) for name, value in asdict(self).items()}

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True)
class _Stratum:
    """Clients that are drawn from together: numerators and denominators, each (clients, meetings)."""

    name: str
    numerators: Array
    denominators: Array


def bootstrap(clients: Mapping[str, Clusters], samples: int, seed: int = 0) -> Interval:
    """The mean over clients, with its interval; of one client, that client's figure."""
    value = float(np.mean([c.ratio() for c in clients.values()]))
    strata = _strata(clients)
    draws = np.mean(np.concatenate([_draws(stratum, samples, seed) for stratum in strata]), axis=0)
    error = float(draws.std(ddof=1))
    if error < 1e-12:
        return Interval(value, value, value, error)
    low, high = np.quantile(draws, _levels(value, draws, _acceleration(strata)))
    return Interval(value, float(low), float(high), error)


def _strata(clients: Mapping[str, Clusters]) -> list[_Stratum]:
    """A stratum a client; where any two of them share a meeting, one of all, in which absent meetings weigh nothing."""
    names = sorted({name for client in clients.values() for name in client.names})
    if len(names) == sum(len(client.names) for client in clients.values()):
        return [_Stratum(name, c.numerator[None], c.denominator[None]) for name, c in clients.items()]
    places = {name: place for place, name in enumerate(names)}
    top, bottom = np.zeros((len(clients), len(names))), np.zeros((len(clients), len(names)))
    for row, client in enumerate(clients.values()):
        own = [places[name] for name in client.names]
        top[row, own], bottom[row, own] = client.numerator, client.denominator
    return [_Stratum("/".join(clients), top, bottom)]


def _draws(stratum: _Stratum, samples: int, seed: int) -> Array:
    """Each client's figure in every resample, (clients, samples): the same meetings are drawn for every run and metric.

    A client none of whose meetings was drawn has its own figure.
    """
    rng = np.random.default_rng([seed, *stratum.name.encode("utf-8")])
    count = stratum.numerators.shape[1]
    picks = rng.integers(0, count, (samples, count))
    top, bottom = stratum.numerators[:, picks].sum(2), stratum.denominators[:, picks].sum(2)
    whole = stratum.numerators.sum(1, keepdims=True) / stratum.denominators.sum(1, keepdims=True)
    ratio: Array = np.divide(top, bottom, out=np.broadcast_to(whole, top.shape).copy(), where=bottom > 0)
    return ratio


def _acceleration(strata: Sequence[_Stratum]) -> float | None:
    """BCa's correction for skew, from the figure with each meeting left out in turn; None where nothing moves it.

    For several samples: Σ_s Σ_m (U_sm / n_s)³ / 6 (Σ_s Σ_m (U_sm / n_s)²)^{3/2}, where U_sm = (n_s − 1)(θ_s· − θ_sm)
    is taken around the stratum's own mean. A client's only meeting cannot be left out.
    """
    total = sum(len(stratum.numerators) for stratum in strata)
    squares = cubes = 0.0
    for stratum in strata:
        tops = stratum.numerators.sum(1, keepdims=True) - stratum.numerators
        bottoms = stratum.denominators.sum(1, keepdims=True) - stratum.denominators
        count = stratum.numerators.shape[1]
        if count < 2 or not (bottoms > 0).all():
            continue
        left_out = (tops / bottoms).sum(0) / total
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
