"""The committed experiments: each can be planned at every scale, and is what its page says."""

from functools import cache
from pathlib import Path

import pytest
import yaml
from conftest import EXPERIMENTS, ROOT

from pipeline.evaluation.comparisons import read_comparisons
from pipeline.plan.checks import read_params, unshown
from pipeline.plan.reading import read_scales
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params
from pipeline.plan.training import left_out

SCALES = [(folder, scale) for folder in EXPERIMENTS for scale in read_scales(folder / "params.yaml")[1]]
PAPER, ABLATIONS = ROOT / "experiments/paper", ROOT / "experiments/ablations"


@cache
def params_of(folder: Path) -> Params:
    return read_params(folder / "params.yaml")


def name_of(value: Path | str) -> str:
    return getattr(value, "name", str(value))


@pytest.mark.parametrize(("folder", "scale"), SCALES, ids=name_of)
def test_every_experiment_is_planned_at_every_scale(folder: Path, scale: str) -> None:
    """With orders for every run, of which a table shows each; at the committed scale each can be trained."""
    content = read_scales(folder / "params.yaml")[1][scale]
    params = Params.model_validate(content | {"precision": "fp32"})
    orders = resolve(params)
    assert {f"{stage}/{run}.json" for stage in ("train", "predict", "evaluate") for run in params.runs} <= set(orders)
    assert unshown(params) == {}
    if scale == params_of(folder).scale:
        assert {run: reason for run in params.runs_of_scale if (reason := left_out(params, run))} == {}


@pytest.mark.parametrize("folder", EXPERIMENTS, ids=name_of)
def test_the_stages_are_the_roots_but_for_where_the_root_is(folder: Path) -> None:
    root, own = (yaml.safe_load((one / "dvc.yaml").read_text(encoding="utf-8")) for one in (ROOT, folder))
    assert own["stages"] == root["stages"]
    assert [set(one) for one in own["vars"]] == [set(one) for one in root["vars"]]
    (where,) = (one["root"] for one in own["vars"] if "root" in one)
    assert (folder / where).resolve() == ROOT


@pytest.mark.parametrize("folder", [f for f in EXPERIMENTS if (f / "comparisons.yaml").is_file()], ids=name_of)
def test_comparisons_have_different_names_and_are_of_planned_runs(folder: Path) -> None:
    """At the committed scale or another; a term may also be a setting."""
    params = params_of(folder)
    comparisons = read_comparisons(folder / "comparisons.yaml").comparisons
    assert len({one.name for one in comparisons}) == len(comparisons)
    assert {term for one in comparisons for term in one.terms} <= {*params.runs, *params.settings}


def test_a_run_of_two_experiments_is_one_training() -> None:
    """AdaFedSelectKD with own start is a run of the paper's experiment and of the ablations."""
    paper, ablations = resolve(params_of(PAPER)), resolve(params_of(ABLATIONS))
    common = [name for name in ablations if name.startswith("train/") and name in paper]
    assert "train/fedselectkd-own.json" in common
    assert [name for name in common if ablations[name] != paper[name]] == []
