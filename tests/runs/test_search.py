"""Fair tuning: which trials there are, and what they are judged by."""

from __future__ import annotations

import csv

import pytest
from conftest import SMALL, Workspace
from pipeline.plan.parts import Search

from pipeline.errors import QuorumError
from pipeline.plan.resolve import training_order
from pipeline.plan.schema import read_params
from pipeline.runs.search import Trial, specs_of, trials_of, with_choices, with_trial


def test_every_run_that_is_searched_gets_as_many_trials() -> None:
    params = read_params()
    trials = list(trials_of(params))
    counts = {t.run: sum(o.run == t.run for o in trials) for t in trials}
    assert set(counts.values()) == {4}
    searched = {"fedprox", "fedopt", "fedavgm", "ditto", "fedkd-base", "fedhardkd", "fedselectkd-base"}
    assert set(counts) == searched


def test_a_trial_changes_its_own_knob_at_its_own_seed() -> None:
    params = read_params()
    plain = training_order(params, "fedprox", 1000).training
    tried = training_order(with_trial(params, Trial("fedprox", (("mu", 0.5),))), "fedprox", 1000).training
    assert plain is not None
    assert tried is not None
    assert (tried.hyperparameters, tried.seed) == ({"mu": 0.5}, 1000)
    assert tried.model_copy(update={"hyperparameters": plain.hyperparameters}) == plain


@pytest.mark.parametrize(
    ("run", "knobs", "message"),
    [
        ("fedprox", {"muu": 1}, "search.trials.fedprox, muu=1: params.yaml: more_runs.fedprox.muu: unknown key"),
        ("fedprox", {"mu": -1}, "search.trials.fedprox, mu=-1: params.yaml: more_runs.fedprox.mu: Input should be"),
        ("fedprox", {"batch_size": 0}, "search.trials.fedprox, batch_size=0: more_runs.fedprox.batch_size"),
        ("zeroshot", {}, "search.trials.zeroshot: trains nothing"),
        ("fedselectkd-base", {"kd_from_round": 4}, "kd_from_round=4: kd_from_round: 4, but of 3 rounds; leave it out"),
    ],
)
def test_a_wrong_trial_is_one_line(run: str, knobs: dict[str, object], message: str) -> None:
    params = read_params()
    wrong = params.model_copy(update={"search": Search(seed=1000, trials={run: [knobs]})})
    with pytest.raises(QuorumError) as caught:
        specs_of(wrong)
    assert message in str(caught.value)


def test_the_least_validation_loss_is_chosen() -> None:
    rows = [{"run": "a", "validation_loss": loss} for loss in (2.0, 1.5)] + [{"run": "b", "validation_loss": 9.0}]
    assert [row["chosen"] for row in with_choices(rows)] == [0, 1, 1]


@pytest.fixture(scope="module")
def encoded(workspace: Workspace) -> Workspace:
    more = {"fedprox": {"method": "AdaFedProx", "mu": 0.01}}
    search = {"seed": 7, "trials": {"fedprox": [{"mu": 0.01}, {"mu": 1}], "gone": [{"mu": 1}, {"mu": 2}]}}
    workspace.params(**SMALL | {"more_runs": more, "search": search, "rounds": 1})
    workspace.repro("encode", "encode-more")
    return workspace


def test_the_table_has_a_row_a_trial_and_nothing_is_trained_twice(encoded: Workspace) -> None:
    first = encoded.pipeline("search").stderr
    assert "fedprox, mu=1: round 1" in first
    assert "gone is no run of params.yaml; left out" in first
    with (encoded.folder / "reports" / "tables" / "search.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["knobs"] for row in rows] == ["mu=0.01", "mu=1"]
    assert [float(row["validation_loss"]) for row in rows if row["chosen"] == "1"] == [
        min(float(row["validation_loss"]) for row in rows)
    ]
    assert "round 1" not in encoded.pipeline("search").stderr
    assert not [path for path in (encoded.folder / "work" / "checkpoints").glob("*") if path.is_dir()]
