"""p-values of a family, adjusted by Holm's step-down procedure (Holm, Scandinavian Journal of Statistics, 1979)."""

from __future__ import annotations

from collections.abc import Sequence

from statsmodels.stats.multitest import multipletests


def holm(p_values: Sequence[float], of: int | None = None) -> list[float]:
    """Holm's adjusted p-values, in the order given: p_(k) · (m − k + 1), made monotone, at most 1.

    Args:
        of: m, where the family has more members than have a p.
    """
    if not p_values:
        return []
    # A member without a p counts like one whose p is 1.
    without = (of or len(p_values)) - len(p_values)
    adjusted = multipletests([*p_values, *[1.0] * without], method="holm")[1]
    return [float(p) for p in adjusted[: len(p_values)]]
