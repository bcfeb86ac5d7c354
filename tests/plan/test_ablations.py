"""The ablations' params.yaml, which lies over the shipped one."""

from __future__ import annotations

import csv
from statistics import fmean
from typing import Any

import pytest
import yaml
from conftest import ROOT
from shipped import SHIPPED

from pipeline.clients.setting import Balanced, Counts
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params, read_params

FILE = ROOT / "experiments" / "ablations" / "params.yaml"


@pytest.fixture(scope="module")
def params() -> Params:
    return read_params(FILE)


@pytest.fixture(scope="module")
def orders(params: Params) -> dict[str, Any]:
    return resolve(params)


def test_every_run_that_is_compared_or_searched_is_planned(params: Params) -> None:
    named = {run for runs in params.studies.values() for run in runs} | set(params.tune.trials)
    assert named <= set(params.all_runs)
    assert params.runs == {}, "the main table is the root's"


def test_every_run_can_be_made(orders: dict[str, Any]) -> None:
    """With the laptop's backbone and rounds."""
    assert orders["encode/more.json"]["left_out"] == []


def test_a_run_of_the_root_is_one_training_there_and_here(orders: dict[str, Any]) -> None:
    """So that nothing is trained twice: both workspaces keep their trainings in one place."""
    root = resolve(read_params(ROOT / "params.yaml"))
    common = [name for name in orders if name.startswith("train/") and name in root]
    assert "train/more/fedselectkd-own-1.json" in common
    assert [name for name in common if orders[name] != root[name]] == []
    assert orders["encode/more.json"]["encoding"] == root["encode/more.json"]["encoding"]


def test_lengths_are_of_the_same_few_examples(params: Params) -> None:
    """On the laptop 80 training examples, of which 448, 1024 and 2048 tokens are read; elsewhere 200."""
    names = ["length_448", "length_1024", "length_2048"]
    found = [params.setting_of(name) for name in names]
    assert found[0] == found[1] == found[2]
    assert [params.limits_of(name)[0] for name in names] == [448, 1024, 2048]
    assert isinstance(found[0], Balanced)
    assert found[0].counts == Counts(train=80, val=40, test=40)


def test_what_has_no_store_trains_on_a_few_examples(params: Params) -> None:
    """Every step of such a run is a full pass: forty training examples on the laptop."""
    small = params.setting_of("small")
    assert isinstance(small, Balanced)
    assert small.counts == Counts(train=40, val=40, test=40)


def test_a_knob_of_the_root_is_the_experiments_own_where_it_says_so() -> None:
    """`dvc exp run -S tau=4` sets it in the experiment's file alone."""
    own = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert own["extends"] == "../../params.yaml"
    again = ("seeds", "tau", "lambda")
    assert [own[knob] for knob in again] == [SHIPPED[knob] for knob in again]


def test_the_scaled_lambda_is_that_of_the_share_which_is_distilled(params: Params) -> None:
    """0.2 times 0.93, what the laptop's AdaFedSelectKD distilled on average over clients and rounds."""
    with (ROOT / "reports" / "tables" / "history.csv").open(encoding="utf-8", newline="") as file:
        shares = [float(row["share_distilled"]) for row in csv.DictReader(file) if row["run"] == "fedselectkd"]
    scaled = params.all_runs["kd-scaled"].knobs["lambda"]
    assert scaled == round(0.2 * fmean(shares), 2)
