"""Human ratings in figures: wins, ties and losses with intervals, and how far raters agree.

Fleiss, "Measuring Nominal Scale Agreement Among Many Raters", Psychological Bulletin 1971: with n_ij of n raters
putting subject i into category j,

    P_i = (Σ_j n_ij² − n) / (n (n − 1))     p_j = Σ_i n_ij / (N n)     κ = (mean P_i − Σ p_j²) / (1 − Σ p_j²)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

OUTCOMES = ("win", "tie", "loss")


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float:
    """κ of (subjects, categories) counts, the same number of raters, at least two, a subject; NaN if all agree by
    putting everything into one category."""
    table = np.asarray(counts, dtype=float)
    raters = table[0].sum()
    if raters < 2 or not np.all(table.sum(1) == raters):
        raise ValueError("every subject needs the same number of raters, at least two")
    observed = ((table**2).sum(1) - raters).mean() / (raters * (raters - 1))
    expected = ((table.sum(0) / table.sum()) ** 2).sum()
    return float((observed - expected) / (1 - expected)) if expected < 1 else float("nan")


@dataclass(frozen=True)
class Outcomes:
    """Shares of wins, ties and losses over examples, each with a 95% interval: outcome -> (value, low, high)."""

    against: str
    shares: Mapping[str, tuple[float, float, float]]
    ratings: int
    kappa: float | None


def outcomes_of(rows: Sequence[Mapping[str, str]], against: str, samples: int = 10_000) -> Outcomes:
    """One opponent's ratings: shares over examples (each example's ratings averaged), examples resampled.

    κ is over the pairs and criteria that as many raters rated as rated any.
    """
    own = [row for row in rows if row["against"] == against]
    examples = sorted({row["example"] for row in own})
    table = np.zeros((len(examples), len(OUTCOMES)))
    for i, example in enumerate(examples):
        found = [row["outcome"] for row in own if row["example"] == example]
        table[i] = [found.count(outcome) / len(found) for outcome in OUTCOMES]
    rng = np.random.default_rng(0)
    drawn = table[rng.integers(0, len(examples), (samples, len(examples)))].mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    shares = {outcome: (float(table[:, j].mean()), float(low[j]), float(high[j])) for j, outcome in enumerate(OUTCOMES)}
    return Outcomes(against, shares, len(own), _kappa(own))


def _kappa(rows: Sequence[Mapping[str, str]]) -> float | None:
    subjects: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        subjects.setdefault((row["item"], row["criterion"]), []).append(row["outcome"])
    raters = max(map(len, subjects.values()))
    counted = [[found.count(o) for o in OUTCOMES] for found in subjects.values() if len(found) == raters]
    return fleiss_kappa(counted) if raters > 1 else None
