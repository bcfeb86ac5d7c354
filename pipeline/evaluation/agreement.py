"""Human ratings in figures: wins, ties and losses with intervals, and how far raters agree.

Fleiss, "Measuring Nominal Scale Agreement Among Many Raters", Psychological Bulletin 1971: with n_ij of n raters
putting subject i into category j,

    P_i = (Σ_j n_ij² − n) / (n (n − 1))     p_j = Σ_i n_ij / (N n)     κ = (mean P_i − Σ p_j²) / (1 − Σ p_j²)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pipeline.evaluation.intervals import Clusters, Interval, interval_of

Outcome = Literal["win", "tie", "loss"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


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
    """Shares of wins, ties and losses over examples, by outcome.

    `preference`: the share of wins less that of losses. `kappa`: over `subjects`, which are pairs and criteria; None
    of one rater, and where all agree by putting everything into one category.
    """

    against: str
    shares: Mapping[Outcome, Interval]
    preference: Interval
    ratings: int
    kappa: float | None
    subjects: int


def outcomes_of(rows: Sequence[Mapping[str, str]], against: str, samples: int) -> Outcomes:
    """One opponent's ratings: shares over examples, each example's ratings averaged, then over clients.

    Intervals flip the signs of whole meetings, as all others do.
    """
    own = [row for row in rows if row["against"] == against]
    shares = {outcome: _interval(own, {outcome: 1}, samples) for outcome in OUTCOMES}
    kappa, subjects = _kappa(own)
    return Outcomes(against, shares, _interval(own, {"win": 1, "loss": -1}, samples), len(own), kappa, subjects)


def _interval(rows: Sequence[Mapping[str, str]], worth: Mapping[str, int], samples: int) -> Interval:
    """The mean of what ratings are worth by outcome, 0 unless said."""
    clients = dict.fromkeys(row["client"] for row in rows)
    return interval_of({client: _clusters(rows, client, worth) for client in clients}, samples)


def _clusters(rows: Sequence[Mapping[str, str]], client: str, worth: Mapping[str, int]) -> Clusters:
    """A client's examples by meeting: what each one's ratings are worth on average."""
    examples: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row["client"] == client:
            examples.setdefault((row["meeting"], row["example"]), []).append(worth.get(row["outcome"], 0))
    values = [sum(found) / len(found) for found in examples.values()]
    return Clusters.of([meeting for meeting, _ in examples], values, [1.0] * len(values))


def _kappa(rows: Sequence[Mapping[str, str]]) -> tuple[float | None, int]:
    """κ, and over how many subjects: those of the number of raters, from two on, that most subjects have."""
    subjects: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        subjects.setdefault((row["item"], row["criterion"]), []).append(row["outcome"])
    sizes = Counter(len(found) for found in subjects.values() if len(found) > 1)
    if not sizes:
        return None, 0
    raters = max(sizes, key=lambda size: (sizes[size], size))
    counted = [[found.count(o) for o in OUTCOMES] for found in subjects.values() if len(found) == raters]
    kappa = fleiss_kappa(counted)
    return None if math.isnan(kappa) else kappa, len(counted)
