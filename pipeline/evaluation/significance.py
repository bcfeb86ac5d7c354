"""p-values of a family, adjusted by Holm's step-down procedure (Holm, Scandinavian Journal of Statistics, 1979)."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float], of: int | None = None) -> list[float]:
    """Holm's adjusted p-values, in the order given: p_(k) · (m − k + 1), made monotone, at most 1.

    Args:
        of: m, where the family has more members than have a p.
    """
    count = of or len(p_values)
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, p_values[i] * (count - rank)))
        adjusted[i] = running
    return adjusted
