"""95% intervals and p-values that flip the signs of whole meetings, since queries of one meeting are not independent.

Fisher, "The Design of Experiments", 1935, section 21; for clusters: Canay, Romano & Shaikh, "Randomization Tests under
an Approximate Symmetry Assumption", Econometrica 2017. A figure is a ratio of sums over meetings (a mean over examples,
or over tokens), averaged over clients:

    θ = (1/C) Σ_c Σ_m a_cm / B_c,      B_c = Σ_m b_cm

If θ₀ is the true value, each meeting's a_cm − θ₀ b_cm is as likely to have the other sign. With random signs s,

    T_s(θ₀) = (1/C) Σ_c Σ_m s_m (a_cm − θ₀ b_cm) / B_c = A_s − θ₀ B_s
    p(θ₀) = (1 + #{|T_s(θ₀)| ≥ |θ − θ₀|}) / (1 + R)

and the interval holds every θ₀ with p(θ₀) > 0.05. |T_s| ≥ |θ − θ₀| is true just between two roots, (θ − A_s)/(1 − B_s)
and (θ + A_s)/(1 + B_s), with θ between them: so each end of the interval is an order statistic of the roots. A meeting
that several clients share has one sign. Where there are so few meetings that all signs agree too often, there is no
interval: a point.

θ₀ is one for all clients. Where a difference between runs is another at each client, that spread enters T_s, so that
the interval is no narrower for it. The level of one run differs between clients, whatever the method, and that is no
noise: its clients are first moved to their common mean (`aligned`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import lru_cache
from statistics import fmean, stdev

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from pipeline.workspace.words import number

Array = NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Clusters:
    """One client: a numerator and a denominator a meeting, each (meetings,), and the meetings' names."""

    numerator: Array
    denominator: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, meetings: Sequence[str], numerators: ArrayLike, denominators: ArrayLike) -> Clusters:
        """Sum examples by meeting, meetings in order of name."""
        names, index = np.unique(np.asarray(meetings), return_inverse=True)
        top, bottom = np.zeros(len(names)), np.zeros(len(names))
        np.add.at(top, index, np.asarray(numerators, dtype=float))
        np.add.at(bottom, index, np.asarray(denominators, dtype=float))
        return cls(top, bottom, tuple(map(str, names)))

    def ratio(self) -> float:
        """Sum of numerators over sum of denominators."""
        return float(self.numerator.sum() / self.denominator.sum())


@dataclass(frozen=True)
class Interval:
    """A figure with its 95% interval; of a point the ends are NaN.

    `standard_error` is that of the meetings within their clients.
    """

    value: float
    low: float
    high: float
    standard_error: float = 0.0

    @property
    def is_point(self) -> bool:
        """Whether there are too few meetings for an interval."""
        return math.isnan(self.low)

    def alone(self) -> Interval:
        """The value as a point."""
        return Interval(self.value, math.nan, math.nan, self.standard_error)

    def times(self, factor: float) -> Interval:
        """In another unit."""
        return Interval(*(factor * one for one in astuple(self)))

    def span(self, digits: int, sign: str = "") -> str:
        """The ends as text, as in `0.12 … 0.34`; of a point, none."""
        return "" if self.is_point else " … ".join(number(end, digits, sign) for end in self.ends)

    def rounded(self, digits: int) -> dict[str, float]:
        """As files have it: a point has no ends."""
        return {name: round(value, digits) for name, value in asdict(self).items() if not math.isnan(value)}

    @property
    def half(self) -> float:
        """From the value to the upper end; NaN of a point."""
        return self.high - self.value

    @property
    def ends(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high


def columns(interval: Interval | None, *names: str) -> dict[str, float | None]:
    """The names of value, low and high -> their numbers, to six digits; None for the ends of a point, and of None."""
    values = (math.nan,) * 3 if interval is None else (interval.value, *interval.ends)
    return {name: None if math.isnan(one) else round(one, 6) for name, one in zip(names, values, strict=True)}


def of_few(values: Sequence[float]) -> Interval:
    """The mean of values that are each other's only evidence, by Student's t, as the gains of three runs; one: a point.

    >>> of_few([1.0, 2.0, 3.0]).span(2)
    '−0.48 … 4.48'
    """
    if len(values) < 2:
        return Interval(values[0], math.nan, math.nan)
    mean, error = fmean(values), stdev(values) / math.sqrt(len(values))
    width = error * float(student.ppf(0.5 + CONFIDENCE / 2, len(values) - 1))
    return Interval(mean, mean - width, mean + width, error)


def aligned(clients: Mapping[str, Clusters]) -> dict[str, Clusters]:
    """Each client moved to the mean over clients: what lies between them is then no noise of the mean."""
    mean = mean_ratio(clients)
    tops = {name: own.numerator - (own.ratio() - mean) * own.denominator for name, own in clients.items()}
    return {name: replace(clients[name], numerator=top) for name, top in tops.items()}


def interval_of(clients: Mapping[str, Clusters], samples: int, seed: int = 0) -> Interval:
    """The mean over clients, with its interval; of one client, that client's figure. `samples`: R, random signs."""
    value = mean_ratio(clients)
    a, b = _flipped(clients, samples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.stack([(value - a) / (1 - b), (value + a) / (1 + b)])
    agree = 1 - np.abs(b) < 1e-12  # all signs do: true of every θ₀
    roots.sort(axis=0)
    roots[0, agree], roots[1, agree] = -np.inf, np.inf
    # p(θ₀) > 0.05 on the left of θ: more than so many left roots are at most θ₀. The right end likewise.
    place = math.floor((1 - CONFIDENCE) * (1 + samples) - 1 + 1e-9)
    low, high = np.sort(roots[0])[place], np.sort(roots[1])[::-1][place]
    if not math.isfinite(low) or not math.isfinite(high):
        low = high = math.nan
    return Interval(value, float(low), float(high), standard_error(clients))


def sign_flip(clients: Mapping[str, Clusters], samples: int, seed: int = 0) -> float:
    """The two-sided p-value of a mean difference: p(0), by the same signs as the interval's."""
    a, _ = _flipped(clients, samples, seed)
    # Equal sums in another order differ in the last bits.
    extreme = np.abs(a) >= abs(mean_ratio(clients)) * (1 - 1e-12)
    return float((1 + extreme.sum()) / (1 + samples))


def mean_ratio(clients: Mapping[str, Clusters]) -> float:
    """The mean over clients of their ratios: θ."""
    return float(np.mean([client.ratio() for client in clients.values()]))


def _flipped(clients: Mapping[str, Clusters], samples: int, seed: int) -> tuple[Array, Array]:
    """A_s and B_s for every draw of signs, each (samples,): the same signs for every run and metric."""
    top, bottom = np.zeros(samples), np.zeros(samples)
    signs = _signs(tuple(client.names for client in clients.values()), samples, seed)
    for client, own in zip(clients.values(), signs, strict=True):
        share = client.denominator.sum() * len(clients)
        top += own @ client.numerator / share
        bottom += own @ client.denominator / share
    return top, bottom


@lru_cache(maxsize=16)
def _signs(names: tuple[tuple[str, ...], ...], samples: int, seed: int) -> list[Array]:
    """The random signs of each client's meetings, (samples, meetings); a meeting of several clients has one sign."""
    rng = np.random.default_rng([seed, 1])
    drawn: dict[str, NDArray[np.int8]] = {}
    found = []
    for own in names:
        new = [name for name in own if name not in drawn]
        signs = 2 * rng.integers(0, 2, (len(new), samples), dtype=np.int8) - 1
        drawn |= dict(zip(new, signs, strict=True))
        found.append(np.stack([drawn[name] for name in own], axis=1).astype(float))
    return found


def standard_error(clients: Mapping[str, Clusters]) -> float:
    """The linearized standard error of the mean over clients.

    Each client is a stratum; where clients share meetings, all of them are one.
    """
    influence: dict[str, dict[str, float]] = {}
    names = [name for client in clients.values() for name in client.names]
    shared = len(set(names)) < len(names)
    for place, client in clients.items():
        rest = (client.numerator - client.ratio() * client.denominator) / client.denominator.sum() / len(clients)
        stratum = influence.setdefault("all" if shared else place, {})
        for name, value in zip(client.names, rest, strict=True):
            stratum[name] = stratum.get(name, 0.0) + float(value)
    strata = [own for own in influence.values() if len(own) > 1]
    return math.sqrt(sum(len(own) / (len(own) - 1) * sum(value**2 for value in own.values()) for own in strata))
