"""Fair tuning: which trials there are, and what they are judged by."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT, make_example
from shipped import SHIPPED, params_with
from workspaces import SMALL

from pipeline.errors import QuorumError
from pipeline.plan.grids import Trial, knob_trials, orders_of, rate_trials, with_learning_rates, with_trial
from pipeline.plan.orders import Training
from pipeline.plan.run import Tune
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import training_order
from pipeline.runs import tuning
from pipeline.runs.trials import without_tests
from pipeline.runs.tuning import TuningData, tune, with_choices
from pipeline.stages import backbone, ingest, plan, prepare
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_json, write_jsonl
from pipeline.workspace.tables import read_table


@pytest.fixture
def params(tmp_path: Path) -> Params:
    """The shipped ones, in a file of the test's own."""
    return read_params(params_with(tmp_path))


def trial(run: str, **knobs: Any) -> Trial:
    return Trial(run, run, tuple(knobs.items()))


def test_every_run_with_knobs_of_its_own_gets_as_many_trials() -> None:
    """Four each. The grid of mu starts lower than was planned, since small values did best at full scale."""
    trials = list(knob_trials(read_params(ROOT / "params.yaml")))
    counts = {t.run: sum(o.run == t.run for o in trials) for t in trials}
    assert counts == {"fedprox": 4, "fedopt": 4}
    assert [o.knobs for o in trials if o.run == "fedprox"] == [(("mu", mu),) for mu in (1e-5, 1e-4, 1e-3, 1e-2)]


def test_every_family_is_tried_on_one_grid() -> None:
    params = read_params(ROOT / "params.yaml")
    grids: dict[str, list[Any]] = {}
    for one in rate_trials(params, params.tune.rates):
        grids.setdefault(one.chooses, []).append(one.knobs[0][1])
    assert grids == {family: [0.0003, 0.0006, 0.0012, 0.0024] for family in ("own", "local", "server", "pooled")}


def test_a_trial_that_the_cap_ended_near_the_best_is_reported() -> None:
    """0.009 nats above the best is near, 0.011 is not; what patience ended has had its rounds."""

    def row(knobs: str, loss: float, ended: str, chosen: int = 0) -> dict[str, Any]:
        return {"chooses": "own", "knobs": knobs, "validation_loss": loss, "ended": ended, "chosen": chosen}

    rows = [row("a", 2.5, "cap", 1), row("b", 2.509, "cap"), row("c", 2.511, "cap"), row("d", 2.501, "patience")]
    assert [one["knobs"] for one in tuning.capped_near(rows)] == ["b"]


def test_a_family_has_the_rate_that_was_chosen_for_it(params: Params) -> None:
    """AdaSingle and distillers with own start; AdaFedAvg's clients and distillers with server start; and so on."""
    chosen = with_learning_rates(params, {"own": 1e-4, "local": 2e-4, "server": 3e-4, "pooled": 4e-4})
    found = {}
    for run in ("single", "fedkd-own", "fedavg-local", "fedselectkd", "fedavg", "fednova", "centralized"):
        training = training_order(chosen, run, 1).training
        assert training is not None
        found[run] = training.learning_rate
    assert found == {
        **dict.fromkeys(("single", "fedkd-own"), 1e-4),
        **dict.fromkeys(("fedavg-local", "fedselectkd"), 2e-4),
        **dict.fromkeys(("fedavg", "fednova"), 3e-4),
        "centralized": 4e-4,
    }


def test_a_trial_changes_its_own_knob_at_its_own_seed(params: Params) -> None:
    plain = training_order(params, "fedprox", 1000).training
    tried = training_order(with_trial(params, trial("fedprox", mu=0.5)), "fedprox", 1000).training
    assert plain is not None
    assert tried is not None
    assert (tried.hyperparameters, tried.seed) == ({"mu": 0.5}, 1000)
    assert tried.model_copy(update={"hyperparameters": plain.hyperparameters}) == plain


def test_a_trial_of_a_threshold_is_one(params: Params) -> None:
    """τ is given in the run and at the top of the file; the trial changes the run's."""
    changed = with_trial(params, trial("fedselectkd", **{"tau": "q0.5", "lambda": 0.4}))
    tried = training_order(changed, "fedselectkd", 1000).training
    assert tried is not None
    assert (tried.hyperparameters["tau"], tried.hyperparameters["lambda"]) == ("q0.5", 0.4)


def test_a_trial_changes_no_other_run(params: Params) -> None:
    changed = with_trial(params, trial("fedprox", mu=0.5))
    assert [name for name, run in params.all_runs.items() if changed.all_runs[name] != run] == ["fedprox"]


@pytest.mark.parametrize(
    ("run", "knobs", "message"),
    [
        ("fedprox", {"muu": 1}, "tune, fedprox, muu=1: params.yaml: more_runs.fedprox.muu: unknown key"),
        ("fedprox", {"mu": -1}, "tune, fedprox, mu=-1: params.yaml: more_runs.fedprox.mu: Input should be"),
        ("fedprox", {"batch_size": 0}, "tune, fedprox, batch_size=0: more_runs.fedprox.batch_size"),
        ("zeroshot", {}, "tune, zeroshot, : trains nothing"),
        ("fedselectkd", {"kd_from_round": 9}, "kd_from_round=9: kd_from_round: 9, but of 8 rounds; leave it out"),
    ],
)
def test_a_wrong_trial_is_one_line(params: Params, run: str, knobs: dict[str, object], message: str) -> None:
    wrong = params.model_copy(update={"tune": Tune(seed=1000, families={}, trials={run: [knobs, knobs]})})
    with pytest.raises(QuorumError) as caught:
        orders_of(wrong, knob_trials(wrong))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_least_validation_loss_is_chosen() -> None:
    rows = [{"chooses": "a", "validation_loss": loss} for loss in (2.0, 1.5)] + [
        {"chooses": "b", "validation_loss": 9.0}
    ]
    assert [row["chosen"] for row in with_choices(rows)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("losses", "grid"),
    [
        ({1.0: 3.0, 2.0: 1.0, 4.0: 2.0}, [1.0, 2.0, 4.0]),
        ({1.0: 3.0, 2.0: 2.0, 4.0: 1.0, 8.0: 2.0}, [1.0, 2.0, 4.0, 8.0]),
        ({0.5: 2.0, 1.0: 1.0, 2.0: 2.0, 4.0: 3.0}, [0.5, 1.0, 2.0, 4.0]),
    ],
    ids=["inside", "above", "below"],
)
def test_a_best_rate_at_an_end_widens_the_grid_of_all(
    params: Params, monkeypatch: pytest.MonkeyPatch, losses: dict[float, float], grid: list[float]
) -> None:
    """By a factor of two, until the best is inside; the second family has its best at 2 all along."""
    planned = Tune(seed=7, rates=[1.0, 2.0, 4.0], families={"own": "single", "pooled": "centralized"}, trials={})
    tried = params.model_copy(update={"tune": planned})

    def outcome(_params: Params, one: Trial, _order: object, _data: object) -> dict[str, Any]:
        rate = one.knobs[0][1]
        return {"validation_loss": losses[rate] if one.run == "single" else abs(rate - 2.0)}

    monkeypatch.setattr(tuning, "_try_all", lambda *_: None)
    monkeypatch.setattr(tuning, "_outcome", outcome)
    rows = tuning._rates(tried, TuningData({}, {}))
    for family in ("own", "pooled"):
        assert [float(row["knobs"].partition("=")[2]) for row in rows if row["chooses"] == family] == grid


def test_a_best_knob_at_an_end_gets_the_value_beyond(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """mu = 1 is the best of 0.01, 0.1 and 1, and 10 is worse: one more by the grid's own step."""
    planned = Tune(seed=7, families={}, trials={"fedprox": [{"mu": 0.01}, {"mu": 0.1}, {"mu": 1.0}]})
    losses = {0.01: 3.0, 0.1: 2.0, 1.0: 1.0, 10.0: 1.5}
    monkeypatch.setattr(tuning, "_try_all", lambda *_: None)
    monkeypatch.setattr(tuning, "_outcome", lambda _p, one, _o, _d: {"validation_loss": losses[one.knobs[0][1]]})
    rows = tuning._knobs(params.model_copy(update={"tune": planned}), TuningData({}, {}))
    assert [(row["knobs"], row["chosen"]) for row in rows] == [
        ("mu=0.01", 0),
        ("mu=0.1", 0),
        ("mu=1.0", 1),
        ("mu=10.0", 0),
    ]


def test_a_knob_that_is_best_at_no_end_is_tried_four_times_beyond_and_reported(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The smaller mu, the better: 0.01, 0.1 and then a tenth of the last, four times."""
    planned = Tune(seed=7, families={}, trials={"fedprox": [{"mu": 0.01}, {"mu": 0.1}]})
    monkeypatch.setattr(tuning, "_try_all", lambda *_: None)
    monkeypatch.setattr(tuning, "_outcome", lambda _p, one, _o, _d: {"validation_loss": one.knobs[0][1]})
    rows = tuning._knobs(params.model_copy(update={"tune": planned}), TuningData({}, {}))
    assert [row["knobs"] for row in rows] == ["mu=0.01", "mu=0.1", "mu=0.001", "mu=0.0001", "mu=1e-05", "mu=1e-06"]
    assert "tune: fedprox: the best, mu=1e-06, is at an end of what was tried" in capsys.readouterr().err


def test_a_rate_that_is_best_at_every_end_is_an_error(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Tune(seed=7, rates=[1.0, 2.0], families={"own": "single"}, trials={})
    monkeypatch.setattr(tuning, "_try_all", lambda *_: None)
    monkeypatch.setattr(tuning, "_outcome", lambda _p, one, _o, _d: {"validation_loss": -one.knobs[0][1]})
    with pytest.raises(QuorumError, match="4 times wider, and still the best is at an end; move the grid"):
        tuning._rates(params.model_copy(update={"tune": planned}), TuningData({}, {}))


def test_no_value_beyond_a_knobs_range_is_tried(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond a momentum of 0.9 the grid's step would lead to 1.62; it has to be below 1."""
    server = {"fedavgm": {"method": "AdaFedAvgM", "server_momentum": 0.5}}
    planned = Tune(seed=7, families={}, trials={"fedavgm": [{"server_momentum": 0.5}, {"server_momentum": 0.9}]})
    losses = {0.5: 2.0, 0.9: 1.0}
    monkeypatch.setattr(tuning, "_try_all", lambda *_: None)
    monkeypatch.setattr(tuning, "_outcome", lambda _p, one, _o, _d: {"validation_loss": losses[one.knobs[0][1]]})
    tried = Params.model_validate(params.model_dump(by_alias=True, exclude_unset=True) | {"more_runs": server})
    rows = tuning._knobs(tried.model_copy(update={"tune": planned}), TuningData({}, {}))
    assert [row["knobs"] for row in rows] == ["server_momentum=0.5", "server_momentum=0.9"]
    assert "the best, server_momentum=0.9, is at an end of what was tried" in capsys.readouterr().err


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with prepared examples of the sample and a backbone, two families and a run with a knob."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sample").symlink_to(ROOT / "data" / "sample")
    more: dict[str, Any] = {"fedprox": {"method": "AdaFedProx", "mu": 0.01}}
    planned = {
        "seed": 7,
        "rates": [4.0, 8.0, 16.0],
        "families": {"server": "fedavg", "local": "fedavg-local"},
        "trials": {"fedprox": [{"mu": 0.01}, {"mu": 1.0}]},
    }
    small = SMALL | {"rounds": 1, "more_runs": more, "tune": planned}
    Path("params.yaml").write_text(yaml.safe_dump(SHIPPED | small), encoding="utf-8")
    plan.run()
    ingest.run("qmsum")
    prepare.run("qmsum")
    backbone.run()
    return tmp_path


def test_the_table_has_a_row_a_trial_and_nothing_is_trained_twice(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = tuning.train_on_meetings
    names: list[str] = []

    def noted(*arguments: Any) -> Any:
        names.append(arguments[3])
        return trained(*arguments)

    monkeypatch.setattr(tuning, "train_on_meetings", noted)
    tune()
    assert "set what it chose in params.yaml" in capsys.readouterr().err
    rows = read_table(layout.TUNING_TABLE)
    for choice in ("server", "local", "fedprox"):
        own = [row for row in rows if row["chooses"] == choice]
        best = min(float(row["validation_loss"]) for row in own)
        assert [float(row["validation_loss"]) for row in own if row["chosen"] == "1"] == [best]
    rates = [row["knobs"] for row in rows if row["chooses"] == "server"]
    assert rates == [row["knobs"] for row in rows if row["chooses"] == "local"]
    assert len([name for name in names if name.startswith("fedavg")]) == len(rates), "one training, two choices"
    assert not [path for path in layout.checkpoints().glob("*") if path.is_dir()], "only the outcomes stay"
    monkeypatch.setattr(tuning, "train_on_meetings", lambda *arguments: pytest.fail("was trained before"))
    tune()
    assert read_table(layout.TUNING_TABLE) == rows


def test_a_trial_in_another_precision_is_refused_before_any_other_is_trained(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune()
    *others, last = sorted(layout.trial("x").parent.glob("*.json"))
    write_json(last, read_json(last) | {"precision": "fp8"})
    for other in others:
        other.unlink()
    monkeypatch.setattr(tuning, "train_on_meetings", lambda *arguments: pytest.fail("was trained"))
    with pytest.raises(QuorumError, match="was computed in fp8, and this plan says"):
        tune()


def test_a_trial_that_diverges_is_the_worst_and_ends_nothing(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The highest rate's loss is not finite; the table has it as inf, and a second call trains nothing."""
    trained = tuning.train_on_meetings

    def diverging(order: Training, *others: Any) -> Any:
        if order.learning_rate == 16.0:
            raise QuorumError("round 1, client Academic, step 1: the loss is nan", code="not_finite")
        if order.algorithm.endswith("fedprox"):
            raise QuorumError("the disk is full")
        return trained(order, *others)

    monkeypatch.setattr(tuning, "train_on_meetings", diverging)
    with pytest.raises(QuorumError, match="the disk is full"):
        tune()
    assert "fedavg, learning_rate=16.0: diverged: round 1" in capsys.readouterr().err
    monkeypatch.setattr(tuning, "train_on_meetings", trained)
    tune()
    rows = [row for row in read_table(layout.TUNING_TABLE) if row["knobs"] == "learning_rate=16.0"]
    assert [(row["validation_loss"], row["ended"], row["chosen"]) for row in rows] == [("inf", "divergence", "0")] * 2


def test_tuning_cannot_see_test_data(prepared: Path) -> None:
    """With the words of every test example replaced, nothing that is chosen changes, and nothing else is read."""
    tune()
    rows, manifest = (
        read_table(layout.TUNING_TABLE),
        read_json(layout.partition(f"{layout.TUNE}/domains", 7))["manifest"],
    )
    assert all(splits["test"] == [] for splits in manifest.values())
    examples = read_jsonl(layout.examples("qmsum"))
    spoiled = [
        row | {"query": "spoiled", "target": "spoiled", "turns": []} for row in examples if row["split"] == "test"
    ]
    assert spoiled
    write_jsonl(layout.examples("qmsum"), [row for row in examples if row["split"] != "test"] + spoiled)
    shutil.rmtree(layout.store())
    shutil.rmtree(layout.trial("x").parent)
    tune()
    assert read_table(layout.TUNING_TABLE) == rows
    encoded = {i for splits in manifest.values() for split in splits.values() for i in split}
    assert len(list(layout.store().rglob("*.safetensors"))) == len(encoded), "what was trained or validated"


def test_test_examples_are_left_out_first() -> None:
    examples = {split: make_example(1, split=split) for split in ("train", "val", "test")}
    assert set(without_tests(examples)) == {"train", "val"}
