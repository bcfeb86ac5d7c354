"""The params.yaml of the experiment on all of QMSum, which lies over the shipped one."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from conftest import ROOT
from shipped import SHIPPED

from pipeline.clients.setting import Domains, Share
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params, read_params
from pipeline.report.paper import read_paper

FOLDER = ROOT / "experiments" / "full"


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params(FOLDER / "params.yaml")


@pytest.fixture(scope="module")
def orders(params: Params) -> dict[str, Any]:
    return resolve(params)


def test_every_run_that_is_claimed_about_is_made(params: Params) -> None:
    """At every seed: the eight claims are judged here."""
    for claim in read_paper().claims:
        for run in (claim.ours, claim.theirs):
            assert all(params.is_made(run, seed) for seed in params.seeds), run


def test_the_main_table_has_nine_rows_from_seven_trainings_in_run_a(params: Params, orders: dict[str, Any]) -> None:
    """Start by loss, beside AdaFedAvg, AdaCentralized and the untrained model; the controls are beyond them."""
    controls = {"fedprox-local", "fedselectkd-q88", "kd-random", "teacher-initial", "centralized-slower"}
    rows = [name for name, run in params.all_runs.items() if name not in controls and run.setting == "domains"]
    assert len(rows) == 9
    group = {name: "main" if name in params.runs else "more" for name in rows}
    trainings = [orders[f"train/{group[name]}/{name}-11.json"]["training"] for name in rows]
    assert len({str(training | {"learning_rate": 0}) for training in trainings if training}) == 7


def test_distillers_with_own_start_are_made_in_run_a_alone(orders: dict[str, Any]) -> None:
    assert sorted(orders["encode/more.json"]["left_out"]) == [
        f"more/{run}-{seed}" for run in ("fedkd-own", "fedselectkd-own") for seed in (12, 13)
    ]


def test_all_training_and_validation_examples_are_taken(params: Params) -> None:
    domains = params.setting_of("domains")
    assert isinstance(domains, Domains)
    assert domains.share_of("Academic") == Share(train_fraction=1.0)
    assert (params.limits_of("domains")[0], params.rounds) == (1024, 12)


def test_runs_b_and_c_test_the_two_halves(orders: dict[str, Any]) -> None:
    assert orders["partition/main.json"]["folds"] == {"12": "first", "13": "second"}


def test_a_knob_of_the_root_is_the_experiments_own_where_it_says_so() -> None:
    own = yaml.safe_load((FOLDER / "params.yaml").read_text(encoding="utf-8"))
    assert [own[knob] for knob in ("tau", "lambda")] == [SHIPPED[knob] for knob in ("tau", "lambda")]


def test_the_sampled_seed_is_none_that_is_reported(params: Params) -> None:
    assert params.tune.seed not in params.seeds
    assert set(params.tune.families) == {"own", "local", "server", "pooled"}
