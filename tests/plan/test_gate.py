"""The trials of experiments/gate: each folder changes one thing of experiments/full, for both models alike."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import ROOT

from pipeline.plan.grids import knob_trials, orders_of, with_trial
from pipeline.plan.schema import Params, read_params

FULL = read_params(ROOT / "experiments" / "full" / "params.yaml")


def tried(params: Params) -> dict[str, dict[str, Any]]:
    """Run -> what its one trial is told, with the tokens that it reads of a source."""
    orders = orders_of(params, knob_trials(params))
    found: dict[str, dict[str, Any]] = {}
    for trial, order in orders.items():
        assert order.training is not None
        told = order.training.model_dump(exclude={"code", "packages", "keep_rounds"})
        found[trial.run] = told | {"source_tokens": with_trial(params, trial).limits_of("domains")[0]}
    return found


@pytest.mark.parametrize(
    ("folder", "changed"),
    [
        ("lora", {"lora_rank": 8, "bottleneck": None}),
        ("narrow", {"bottleneck": 288}),
        ("deep", {"adapted_layers": 12}),
        ("longer", {"source_tokens": 2048}),
    ],
)
def test_one_thing_is_changed(folder: str, changed: dict[str, Any]) -> None:
    params = read_params(ROOT / "experiments" / "gate" / folder / "params.yaml")
    usual = FULL.model_copy(update={"tune": params.tune})
    for run, told in tried(params).items():
        known = tried(usual)[run] | {"learning_rate": told["learning_rate"]}
        assert {name: value for name, value in told.items() if value != known[name]} == changed


@pytest.mark.parametrize("folder", ["narrow", "deep", "longer"])
def test_rates_are_those_of_the_full_table(folder: str) -> None:
    params = read_params(ROOT / "experiments" / "gate" / folder / "params.yaml")
    rates = {run: told["learning_rate"] for run, told in tried(params).items()}
    assert rates == {"single": FULL.learning_rates.own, "centralized": FULL.learning_rates.pooled}
