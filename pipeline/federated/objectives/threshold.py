"""The threshold τ as it is written in params.yaml."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator


def _checked(value: object) -> float | str:
    if isinstance(value, str) and value.startswith("q"):
        share = _number(value[1:])
        if not 0 < share < 1:
            raise ValueError("a quantile is q and a number between 0 and 1, as in q0.88")
        return value
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError("is a number of nats, at least 0 and finite, or a quantile as in q0.88")
    return number


def quantile_of(tau: float | str) -> float | None:
    """0.88 of `q0.88`; None of a number of nats."""
    return float(tau[1:]) if isinstance(tau, str) else None


def _number(value: object) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


Tau = Annotated[float | str, BeforeValidator(_checked)]
"""Nats, or `q0.88`: that quantile of the teacher's entropies on a client's training tokens, anew each round."""
