"""How a grid of tuning grows where its best value is at an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shipped import SHIPPED, params_with

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


def planned(tmp_path: Path, **trials: list[dict[str, Any]]) -> Params:
    """Two runs of a part of the data, one of all of it."""
    runs = {
        "single-part": {"method": "AdaSingle", "setting": "part"},
        "pooled-part": {"method": "AdaCentralized", "setting": "part"},
        "fedprox": {"method": "AdaFedProx", "mu": 0.1},
    }
    part = {"kind": "domains", "clients": ["Academic"], "train_fraction": 0.3}
    tune = {"seed": 1000, "families": {}, "trials": trials}
    return read_params(
        params_with(tmp_path, more_runs=runs, settings=SHIPPED["settings"] | {"part": part}, tune=tune, studies={})
    )


def test_runs_of_one_setting_are_tried_at_the_same_rates(tmp_path: Path) -> None:
    """The best of `single-part` is at the end, so `pooled-part` gets the rate, too; mu of `fedprox` is its own."""
    rates = [{"learning_rate": 0.1}, {"learning_rate": 0.2}]
    params = planned(tmp_path, **{"single-part": rates, "pooled-part": rates, "fedprox": [{"mu": 0.1}, {"mu": 0.2}]})
    tried = list(knob_trials(params))
    best = {"single-part": tried[1], "pooled-part": tried[3], "fedprox": tried[4]}
    assert [(one.run, str(one)) for one in further(params, tried, best)] == [
        ("single-part", "learning_rate=0.4"),
        ("pooled-part", "learning_rate=0.4"),
        ("fedprox", "mu=0.05"),
    ]


def test_a_knob_is_its_runs_own(tmp_path: Path) -> None:
    knobs = [{"mu": 0.1}, {"mu": 0.2}]
    params = planned(tmp_path, fedprox=knobs)
    tried = list(knob_trials(params))
    assert further(params, tried, {"fedprox": tried[0]}) == [Trial("fedprox", "fedprox", (("mu", 0.05),))]


@pytest.mark.parametrize("other", [{"mu": "q0.5"}, {"mu": 0.2, "rounds": 8}], ids=["words", "several knobs"])
def test_other_grids_stay(tmp_path: Path, other: dict[str, Any]) -> None:
    params = planned(tmp_path, fedprox=[{"mu": 0.1}, {"mu": 0.2}])
    tried = [*knob_trials(params), Trial("fedprox", "fedprox", tuple(other.items()))]
    assert further(params, tried, {"fedprox": tried[0]}) == []
