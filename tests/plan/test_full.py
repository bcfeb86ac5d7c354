"""The params.yaml of the experiment on all of QMSum, which lies over the shipped one."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from conftest import ROOT
from shipped import SHIPPED

from pipeline.clients.setting import Domains, Share
from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params, read_params

FOLDER = ROOT / "experiments" / "full"


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params(FOLDER / "params.yaml")


@pytest.fixture(scope="module")
def orders(params: Params) -> dict[str, Any]:
    return resolve(params)


def test_every_run_that_is_compared_is_planned_at_every_seed(params: Params) -> None:
    asked = read_comparisons(FOLDER / "comparisons.yaml")
    for run in {run for one in asked.comparisons for run in one.terms}:
        assert all(params.has_seed(run, seed) for seed in params.seeds), run


def test_all_training_and_validation_examples_are_taken(params: Params) -> None:
    domains = params.setting_of("domains")
    assert isinstance(domains, Domains)
    assert domains.share_of("Academic") == Share(train_fraction=1.0)
    assert (params.limits_of("domains")[0], params.rounds) == (1024, 12)


def test_runs_b_and_c_test_the_two_halves(orders: dict[str, Any]) -> None:
    assert orders["partition/domains.json"]["folds"] == {"12": "first", "13": "second"}


def test_a_knob_of_the_root_is_the_experiments_own_where_it_says_so() -> None:
    own = yaml.safe_load((FOLDER / "params.yaml").read_text(encoding="utf-8"))
    assert [own[knob] for knob in ("tau", "lambda")] == [SHIPPED[knob] for knob in ("tau", "lambda")]


def test_the_sampled_seed_is_none_that_is_reported(params: Params) -> None:
    assert params.tune.seed not in params.seeds
    assert set(params.tune.families) == {"own", "local", "server", "pooled"}
