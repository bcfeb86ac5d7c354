"""The committed experiments: each can be planned at every scale, and is what its page says."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
import yaml
from conftest import ROOT

from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan.checks import read_params, unshown
from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.plan.training import left_out

FOLDERS = [".", *sorted(path.parent.name for path in ROOT.glob("experiments/*/params.yaml"))]


def folder_of(name: str) -> Path:
    return ROOT if name == "." else ROOT / "experiments" / name


@cache
def params_of(name: str) -> Params:
    return read_params(folder_of(name) / "params.yaml")


def scales() -> list[tuple[str, str]]:
    return [(name, scale) for name in FOLDERS for scale in read_scales(folder_of(name) / "params.yaml")[1]]


@pytest.mark.parametrize(("name", "scale"), scales())
def test_every_experiment_is_planned_at_every_scale(name: str, scale: str) -> None:
    """With orders for every run, of which a table shows each; at the committed scale each can be trained."""
    content = read_scales(folder_of(name) / "params.yaml")[1][scale]
    params = Params.model_validate(content | {"precision": "fp32"})
    orders = resolve(params)
    assert {f"{stage}/{run}.json" for stage in ("train", "predict", "evaluate") for run in params.runs} <= set(orders)
    assert unshown(params) == {}
    if scale == params_of(name).scale:
        assert {run: reason for run in params.runs_of_scale if (reason := left_out(params, run))} == {}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_stages_are_the_roots_but_for_where_the_root_is(name: str) -> None:
    root, own = (yaml.safe_load((folder_of(one) / "dvc.yaml").read_text(encoding="utf-8")) for one in (".", name))
    assert own["stages"] == root["stages"]
    assert [set(one) for one in own["vars"]] == [set(one) for one in root["vars"]]
    (where,) = (one["root"] for one in own["vars"] if "root" in one)
    assert (folder_of(name) / where).resolve() == ROOT


@pytest.mark.parametrize("name", [name for name in FOLDERS if (folder_of(name) / "comparisons.yaml").is_file()])
def test_comparisons_have_different_names_and_are_of_planned_runs(name: str) -> None:
    """At the committed scale or another; a term may also be a setting."""
    params = params_of(name)
    comparisons = read_comparisons(folder_of(name) / "comparisons.yaml").comparisons
    assert len({one.name for one in comparisons}) == len(comparisons)
    assert {term for one in comparisons for term in one.terms} <= {*params.runs, *params.settings}


def test_a_run_of_two_experiments_is_one_training() -> None:
    """AdaFedSelectKD with own start is a run of the paper's experiment and of the ablations."""
    paper, ablations = resolve(params_of("paper")), resolve(params_of("ablations"))
    common = [name for name in ablations if name.startswith("train/") and name in paper]
    assert "train/fedselectkd-own.json" in common
    assert [name for name in common if ablations[name] != paper[name]] == []


def test_the_scaled_lambda_is_that_of_the_share_which_is_distilled() -> None:
    """0.2 times 0.93, which the paper's AdaFedSelectKD distilled on average over clients and rounds."""
    with (folder_of("paper") / "reports" / "tables" / "history.csv").open(encoding="utf-8", newline="") as file:
        shares = [float(row["share_distilled"]) for row in csv.DictReader(file) if row["run"] == "fedselectkd"]
    assert params_of("ablations").runs["kd-scaled"].knobs["lambda"] == round(0.2 * fmean(shares), 2)
