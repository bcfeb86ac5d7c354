"""Fair tuning: which trials there are, and what they are judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from shipped import SHIPPED, params_with
from workspaces import SMALL

from pipeline.errors import QuorumError
from pipeline.plan.run import Search
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import training_order
from pipeline.runs import search as searching
from pipeline.runs.search import Trial, orders_of, search, trials_of, with_choices, with_trial
from pipeline.stages import backbone, encode, ingest, partition, plan, prepare
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table


@pytest.fixture
def params(tmp_path: Path) -> Params:
    """The shipped ones, in a file of the test's own."""
    return read_params(params_with(tmp_path))


def test_every_run_that_is_searched_gets_as_many_trials() -> None:
    params = read_params(ROOT / "params.yaml")
    trials = list(trials_of(params))
    counts = {t.run: sum(o.run == t.run for o in trials) for t in trials}
    assert set(counts.values()) == {4}
    assert set(counts) == set(SHIPPED["search"]["trials"]) >= {"fedprox", "fedopt", "fedkd-base", "fedselectkd-base"}


def test_a_trial_changes_its_own_knob_at_its_own_seed(params: Params) -> None:
    plain = training_order(params, "fedprox", 1000).training
    tried = training_order(with_trial(params, Trial("fedprox", (("mu", 0.5),))), "fedprox", 1000).training
    assert plain is not None
    assert tried is not None
    assert (tried.hyperparameters, tried.seed) == ({"mu": 0.5}, 1000)
    assert tried.model_copy(update={"hyperparameters": plain.hyperparameters}) == plain


def test_a_trial_of_a_threshold_is_one(params: Params) -> None:
    """τ stands in the run and at the top of the file; the run's own is tried."""
    trial = Trial("fedselectkd-base", (("tau", "q0.5"), ("lambda", 0.4)))
    tried = training_order(with_trial(params, trial), "fedselectkd-base", 1000).training
    assert tried is not None
    assert (tried.hyperparameters["tau"], tried.hyperparameters["lambda"]) == ("q0.5", 0.4)


def test_a_trial_changes_no_other_run(params: Params) -> None:
    changed = with_trial(params, Trial("fedprox", (("mu", 0.5),)))
    assert [name for name, run in params.all_runs.items() if changed.all_runs[name] != run] == ["fedprox"]


@pytest.mark.parametrize(
    ("run", "knobs", "message"),
    [
        ("fedprox", {"muu": 1}, "search.trials.fedprox, muu=1: params.yaml: more_runs.fedprox.muu: unknown key"),
        ("fedprox", {"mu": -1}, "search.trials.fedprox, mu=-1: params.yaml: more_runs.fedprox.mu: Input should be"),
        ("fedprox", {"batch_size": 0}, "search.trials.fedprox, batch_size=0: more_runs.fedprox.batch_size"),
        ("zeroshot", {}, "search.trials.zeroshot: trains nothing"),
        ("fedselectkd-base", {"kd_from_round": 9}, "kd_from_round=9: kd_from_round: 9, but of 8 rounds; leave it out"),
    ],
)
def test_a_wrong_trial_is_one_line(params: Params, run: str, knobs: dict[str, object], message: str) -> None:
    wrong = params.model_copy(update={"search": Search(seed=1000, trials={run: [knobs]})})
    with pytest.raises(QuorumError) as caught:
        orders_of(wrong)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_least_validation_loss_is_chosen() -> None:
    rows = [{"run": "a", "validation_loss": loss} for loss in (2.0, 1.5)] + [{"run": "b", "validation_loss": 9.0}]
    assert [row["chosen"] for row in with_choices(rows)] == [0, 1, 1]


@pytest.fixture
def encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in which the stages up to encoding have run, on the sample, with one run to tune."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sample").symlink_to(ROOT / "data" / "sample")
    more: dict[str, Any] = {"fedprox": {"method": "AdaFedProx", "mu": 0.01}}
    trials = {"fedprox": [{"mu": 0.01}, {"mu": 1}], "gone": [{"mu": 1}, {"mu": 2}]}
    small = SMALL | {"rounds": 1, "more_runs": more, "search": {"seed": 7, "trials": trials}}
    Path("params.yaml").write_text(yaml.safe_dump(SHIPPED | small), encoding="utf-8")
    plan.run()
    ingest.run("qmsum")
    prepare.run("qmsum")
    backbone.run()
    partition.run("more")
    encode.run("more")
    return tmp_path


def test_the_table_has_a_row_a_trial_and_nothing_is_trained_twice(
    encoded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    search()
    first = capsys.readouterr().err
    assert "fedprox, mu=1: round 1" in first
    assert "gone is no run of params.yaml; left out" in first
    rows = read_table(layout.SEARCH_TABLE)
    assert [(row["method"], row["knobs"]) for row in rows] == [("AdaFedProx", "mu=0.01"), ("AdaFedProx", "mu=1")]
    assert [float(row["validation_loss"]) for row in rows if row["chosen"] == "1"] == [
        min(float(row["validation_loss"]) for row in rows)
    ]
    assert [row["best_rounds"] for row in rows] == ["1/1/1"] * 2, "one round, of three clients"
    assert not [path for path in layout.checkpoints().glob("*") if path.is_dir()], "kept are the outcomes alone"
    monkeypatch.setattr(searching, "train", lambda *arguments: pytest.fail("was trained before"))
    search()
    assert read_table(layout.SEARCH_TABLE) == rows
