"""How a grid of tuning grows where its best value is at an end."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.plan.grids import Trial, beyond, widened


@pytest.mark.parametrize(
    ("best", "grid"),
    [([2.0], [1.0, 2.0, 4.0]), ([4.0, 2.0], [1.0, 2.0, 4.0, 8.0]), ([1.0, 4.0], [0.5, 1.0, 2.0, 4.0, 8.0])],
    ids=["inside", "above for one family", "at both ends"],
)
def test_rates_grow_by_a_factor_of_two(best: list[float], grid: list[float]) -> None:
    assert widened([1.0, 2.0, 4.0], best) == grid


def trials(**knobs: list[Any]) -> list[Trial]:
    (name, values), *more = knobs.items()
    return [Trial("fedprox", "fedprox", ((name, value), *((other, own[0]) for other, own in more))) for value in values]


@pytest.mark.parametrize(("best", "next_value"), [("mu=0.02", 0.04), ("mu=0.001", 0.0001)])
def test_a_knob_goes_on_by_the_step_at_its_end(best: str, next_value: float) -> None:
    """0.001, 0.01, 0.02: a tenth below, twice above."""
    assert beyond(trials(mu=[0.001, 0.01, 0.02]), best) == trials(mu=[next_value])


@pytest.mark.parametrize(
    ("tried", "best"),
    [
        (trials(mu=[0.001, 0.01, 0.02]), "mu=0.01"),
        (trials(mu=[0.01]), "mu=0.01"),
        (trials(tau=["q0.25", "q0.5"]), "tau=q0.5"),
        (trials(mu=[0.01, 0.02], rounds=[8]), "mu=0.02 rounds=8"),
    ],
    ids=["inside", "one value", "words", "several knobs"],
)
def test_other_grids_stay(tried: list[Trial], best: str) -> None:
    assert beyond(tried, best) == []
