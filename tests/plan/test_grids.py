"""How a grid of tuning grows where its best value is at an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shipped import params_with

from pipeline.plan.grids import Trial, beyond, further, knob_trials, widened
from pipeline.plan.schema import Params, read_params


@pytest.mark.parametrize(
    ("best", "grid"),
    [([2.0], [1.0, 2.0, 4.0]), ([4.0, 2.0], [1.0, 2.0, 4.0, 8.0]), ([1.0, 4.0], [0.5, 1.0, 2.0, 4.0, 8.0])],
    ids=["inside", "above for one family", "at both ends"],
)
def test_rates_grow_by_a_factor_of_two(best: list[float], grid: list[float]) -> None:
    assert widened([1.0, 2.0, 4.0], best) == grid


@pytest.mark.parametrize(
    ("grid", "best", "more"),
    [
        ([0.001, 0.01, 0.02], 0.02, 0.04),
        ([0.001, 0.01, 0.02], 0.001, 0.0001),
        ([0.001, 0.01, 0.02], 0.01, None),
        ([0.01], 0.01, None),
        ([0.0, 0.1], 0.1, None),
        ([0.0, 0.1], 0.0, None),
    ],
)
def test_a_knob_goes_on_by_the_step_at_its_end(grid: list[float], best: float, more: float | None) -> None:
    """0.001, 0.01, 0.02: a tenth below, twice above; to or from 0 there is no such step."""
    assert beyond(grid, best) == more


def planned(tmp_path: Path, trials: list[dict[str, Any]]) -> Params:
    runs = {"fedprox": {"method": "AdaFedProx", "mu": 0.1}}
    tune = {"seed": 1000, "families": {}, "trials": {"fedprox": trials}}
    return read_params(params_with(tmp_path, more_runs=runs, tune=tune, studies={}))


def test_a_run_goes_on_at_the_end_that_is_best(tmp_path: Path) -> None:
    """0.1 is half of 0.2: so is 0.05 of it."""
    params = planned(tmp_path, [{"mu": 0.1}, {"mu": 0.2}])
    tried = list(knob_trials(params))
    assert further(params, tried, {"fedprox": tried[0]}) == [Trial("fedprox", "fedprox", (("mu", 0.05),))]


@pytest.mark.parametrize("other", [{"mu": "q0.5"}, {"mu": 0.2, "rounds": 8}], ids=["words", "several knobs"])
def test_other_grids_stay(tmp_path: Path, other: dict[str, Any]) -> None:
    params = planned(tmp_path, [{"mu": 0.1}, {"mu": 0.2}])
    tried = [*knob_trials(params), Trial("fedprox", "fedprox", tuple(other.items()))]
    assert further(params, tried, {"fedprox": tried[0]}) == []
