"""Effects between texts of equal length: gains regressed on log lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.evaluation.intervals import Array, Interval


@dataclass(frozen=True)
class AtLength:
    """One client's examples: the contrast of the metric and of the log of the length in words, each (examples,)."""

    gains: Array
    lengths: Array
    groups: Sequence[str]


def at_equal_length(clients: Mapping[str, AtLength], samples: int = 2_000, seed: int = 0) -> Interval:
    """The mean over clients of the effect at equal length: the intercept of gains regressed on log lengths.

    g_i = a_c + b_c l_i for client c's examples; the effect is the mean of a_c. The interval is the percentile bootstrap
    over groups, within each client; where clients share groups, a group is drawn for all of them at once.
    """
    rng = np.random.default_rng(seed)
    names = {client: sorted(set(own.groups)) for client, own in clients.items()}
    every = sorted(set().union(*names.values()))
    counts: dict[str, Array] = {}
    for stratum in names.values() if len(every) == sum(map(len, names.values())) else [every]:
        times = rng.multinomial(len(stratum), np.full(len(stratum), 1 / len(stratum)), size=samples)
        counts |= dict(zip(stratum, times.T, strict=True))
    values, drawn = [], []
    for client, own in clients.items():
        gains, lengths = own.gains, own.lengths
        moments = np.stack([np.ones_like(gains), lengths, gains, lengths**2, lengths * gains], axis=1)
        by_group = np.zeros((len(names[client]), moments.shape[1]))
        np.add.at(by_group, np.searchsorted(names[client], own.groups), moments)
        values.append(float(_intercept(by_group.sum(0)[None])[0]))
        drawn.append(_intercept(np.stack([counts[name] for name in names[client]], axis=1) @ by_group))
    low, high = np.nanpercentile(np.mean(drawn, axis=0), [2.5, 97.5])
    return Interval(float(np.mean(values)), float(low), float(high))


def _intercept(moments: Array) -> Array:
    """Of sums (n, Σl, Σg, Σl², Σlg), each row: a = ḡ − b l̄; where all lengths are equal, ḡ."""
    n, length, gain, square, product = moments.T
    spread = n * square - length**2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 1e-12, (n * product - length * gain) / spread, 0.0)
        return np.asarray((gain - slope * length) / n)
