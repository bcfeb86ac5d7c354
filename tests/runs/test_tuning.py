"""Fair tuning: which trials there are, and what they are judged by."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from workspaces import SMALL

from pipeline.errors import QuorumError
from pipeline.plan.orders import Training
from pipeline.plan.schema import Params
from pipeline.plan.training import train_order
from pipeline.runs import tuning
from pipeline.runs.tuning import tune, with_choices, with_value
from pipeline.stages import backbone, ingest, plan, prepare
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl, write_jsonl
from pipeline.workspace.tables import read_table, write_table

RUNS: dict[str, Any] = SMALL["runs"] | {
    "fedprox": {"setting": "domains", "method": "AdaFedProx", "mu": 0.01},
    "fedavgm": {"setting": "domains", "method": "AdaFedAvgM", "server_momentum": 0.5},
}
RATES = {"grid": [1.0, 2.0, 4.0], "chooses": {"rates.server": "fedavg", "rates.local": "fedavg-local"}}
MU = {"grid": [0.01, 0.1], "chooses": {"runs.fedprox.mu": "fedprox"}}
MOMENTUM = {"grid": [0.5, 0.9], "chooses": {"runs.fedavgm.server_momentum": "fedavgm"}}
PARAMS = Params.model_validate(SMALL | {"runs": RUNS})


def tuned(params: dict[str, Any], **searches: Any) -> None:
    """Write params.yaml with searches, and tune."""
    content = SMALL | {"runs": RUNS} | params | {"tune": {"seed": 7, "searches": searches}}
    Path("params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    tune()


def rows_of(key: str) -> list[dict[str, str]]:
    return [row for row in read_table(layout.TUNING_TABLE) if row["chooses"] == key]


def chosen(key: str) -> list[float]:
    return [float(row["value"]) for row in rows_of(key) if row["chosen"] == "1"]


def tried(key: str) -> list[float]:
    return [float(row["value"]) for row in rows_of(key)]


# -- which trials there are, with losses by formula --------------------------------------------------------------------

Losses = Callable[[Training], float]
Given = Callable[[Losses], list[Training]]


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """Trials have a given loss, without data: a function of it, which returns the list of what will be trained."""
    monkeypatch.chdir(tmp_path)
    index: Any = None
    monkeypatch.setattr(tuning, "training_key", lambda *_: "key")
    monkeypatch.setattr(tuning, "_drawn", lambda params, run: tuning.Drawn({}, index, "d"))

    def give(loss: Losses) -> list[Training]:
        done: list[Training] = []

        def try_one(trial: tuning.Trial) -> dict[str, Any]:
            training = trial.order.training
            assert training is not None
            done.append(training)
            about = {"chooses": trial.key, "run": trial.run, "method": trial.method, "value": trial.value}
            how = {"precision": "fp32", "code": tuning._code(trial), "fingerprint": trial.fingerprint}
            found = {"validation_loss": round(loss(training) + (trial.order.evaluated == "last"), 5)}
            return about | how | found | {"best_rounds": "1", "rounds": 2, "ended": "patience"}

        monkeypatch.setattr(tuning, "_try", try_one)
        return done

    return give


@pytest.mark.parametrize(
    ("best", "grid"),
    [(2.0, [1.0, 2.0, 4.0]), (7.0, [1.0, 2.0, 4.0, 8.0, 16.0]), (0.9, [0.5, 1.0, 2.0, 4.0])],
    ids=["inside", "above", "below"],
)
def test_a_best_value_at_an_end_widens_the_grid_for_all_keys(given: Given, best: float, grid: list[float]) -> None:
    """By the grid's own step, until no best is at an end. One training serves both runs."""
    done = given(lambda training: abs(training.learning_rate - best))
    tuned({}, rates=RATES)
    assert tried("rates.server") == tried("rates.local") == grid
    assert {training.seed for training in done} == {7}
    assert sorted({training.learning_rate for training in done}) == grid


def test_one_key_that_is_best_at_an_end_widens_the_grid_of_the_others(given: Given) -> None:
    """The pooled run is best at 2, AdaSingle at 0.5, below the grid's end."""
    given(lambda training: abs(training.learning_rate - (2.0 if "centralized" in training.algorithm else 0.5)))
    runs = {"single": {"setting": "domains", "method": "AdaSingle"}}
    runs |= {"pooled": {"setting": "domains", "method": "AdaCentralized"}}
    tuned(
        {"runs": RUNS | runs},
        rates={"grid": [1.0, 2.0, 4.0], "chooses": {"rates.own": "single", "rates.pooled": "pooled"}},
    )
    assert tried("rates.own") == tried("rates.pooled") == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert (chosen("rates.own"), chosen("rates.pooled")) == ([0.5], [2.0])


def test_a_value_that_is_best_at_no_end_is_tried_four_times_beyond_and_reported(
    given: Given, capsys: pytest.CaptureFixture[str]
) -> None:
    """The smaller mu, the better: 0.01, 0.1 and then a tenth of the last, four times."""
    given(lambda training: training.hyperparameters["mu"])
    tuned({}, mu=MU)
    assert tried("runs.fedprox.mu") == [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1]
    assert ", at an end of what was tried" in capsys.readouterr().err


def test_no_value_beyond_a_knobs_range_is_tried(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    """Beyond a momentum of 0.9 the grid's step leads to 1.62, and it has to be below 1."""
    given(lambda training: 1 - training.hyperparameters["server_momentum"])
    tuned({}, momentum=MOMENTUM)
    assert tried("runs.fedavgm.server_momentum") == [0.5, 0.9]
    assert "0.9 has the least validation loss, 0.1, at an end of what was tried" in capsys.readouterr().err


def test_later_searches_have_what_earlier_ones_chose(given: Given) -> None:
    done = given(lambda training: abs(training.learning_rate - 2.0))
    tuned({}, rates=RATES, mu=MU)
    assert {training.learning_rate for training in done if "fedprox" in training.algorithm} == {2.0}


def test_a_trial_is_judged_by_the_round_that_tables_evaluate(given: Given) -> None:
    """The losses of last rounds are higher by 1."""
    given(lambda training: abs(training.learning_rate - 2.0))
    for evaluated, least in (("best", 0.0), ("last", 1.0)):
        tuned({"evaluated": evaluated}, rates=RATES)
        assert [row["validation_loss"] for row in rows_of("rates.server")] == [str(least + more) for more in (1, 0, 2)]


def test_rows_of_other_scales_stay(given: Given) -> None:
    given(lambda training: abs(training.learning_rate - 2.0))
    tuned({"scale": "large"}, rates=RATES)
    tuned({}, rates=RATES)
    tuned({}, rates=RATES)
    assert [row["scale"] for row in rows_of("rates.server")] == ["large"] * 3 + ["small"] * 3


def test_a_trial_in_another_precision_is_refused_before_any_other_is_trained(given: Given) -> None:
    done = given(lambda training: abs(training.learning_rate - 2.0))
    tuned({}, rates=RATES)
    write_table(layout.TUNING_TABLE, [read_table(layout.TUNING_TABLE)[0] | {"precision": "fp8"}])
    done.clear()
    with pytest.raises(QuorumError, match="was computed in fp8, and this plan says"):
        tuned({}, rates=RATES)
    assert done == []


@pytest.mark.parametrize(
    ("key", "run", "message"),
    [
        ("runs.fedprox.muu", "fedprox", "runs.fedprox.muu: unknown key"),
        ("rates.ours", "fedprox", "rates.ours: unknown key"),
        ("scale.x", "fedprox", "scale.x: is no key; correct it"),
        ("lambda", "fedprox", "lambda: Input should be less than"),
        ("rates.server", "zeroshot", "rates.server: run zeroshot trains nothing; choose another"),
        ("runs.fedselectkd.kd_from_round", "fedselectkd", "kd_from_round: 9, but of 2 rounds"),
    ],
)
def test_a_wrong_trial_is_one_line(given: Given, key: str, run: str, message: str) -> None:
    done = given(lambda training: 0.0)
    with pytest.raises(QuorumError) as caught:
        tuned({}, wrong={"grid": [1.0, 9.0], "chooses": {key: run}})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert done == []


def test_nothing_to_tune_is_an_error(given: Given) -> None:
    given(lambda training: 0.0)
    with pytest.raises(QuorumError, match=r"tune\.searches: is empty"):
        tuned({})


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("rates.server", 0.5, lambda training: training.learning_rate),
        ("data.qmsum.rates.server", 0.5, lambda training: training.learning_rate),
        ("learning_rate", 0.5, lambda training: training.learning_rate),
        ("rounds", 5.0, lambda training: training.rounds),
        ("runs.fedprox.mu", 0.5, lambda training: training.hyperparameters["mu"]),
    ],
)
def test_a_value_is_set_at_its_dotted_key(key: str, value: float, found: Callable[[Training], float]) -> None:
    """Nothing else in the run's training changes."""
    plain, changed = (train_order(params, "fedprox").training for params in (PARAMS, with_value(PARAMS, key, value)))
    assert plain is not None
    assert changed is not None
    assert (found(changed), found(plain) != value) == (value, True)
    assert len([name for name in Training.model_fields if getattr(plain, name) != getattr(changed, name)]) == 1


def test_a_value_of_one_run_changes_no_other_run() -> None:
    changed = with_value(PARAMS, "runs.fedprox.mu", 0.5)
    assert [name for name, run in PARAMS.runs.items() if changed.runs[name] != run] == ["fedprox"]


def test_the_least_validation_loss_is_chosen_and_of_equal_ones_the_first() -> None:
    losses = [("a", 2.0), ("a", 1.5), ("a", 1.5), ("b", 9.0)]
    rows = [{"chooses": key, "validation_loss": loss} for key, loss in losses]
    assert [row["chosen"] for row in with_choices(rows)] == [0, 1, 0, 1]


def test_a_trial_that_the_cap_ended_near_the_best_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """0.009 nats above the best is near, 0.011 is not; what patience ended has had its rounds."""
    trials = [(1.0, 2.5, "cap"), (2.0, 2.509, "cap"), (3.0, 2.511, "cap"), (4.0, 2.501, "patience")]
    names = ("value", "validation_loss", "ended")
    rows = [dict(zip(names, trial, strict=True)) | {"chooses": "k"} for trial in trials]
    tuning._report("s", with_choices(rows), [0.0, 5.0])
    assert "the cap on rounds ended 2, near the best" in capsys.readouterr().err


# -- real trials -------------------------------------------------------------------------------------------------------

TEXTS: dict[str, Any] = {
    "sources": ["notes"],
    "backbones": ["tiny-bert"],
    "backbone": "tiny-bert",
    "data": {
        "notes": {"task": "classify", "source": "notes", "file": "data/own/notes.csv", "take": {"test": {"count": 2}}}
    },
    "settings": {"domains": {"data": "notes", "kind": "skewed", "clients": 2}},
    "runs": {"fedavg": RUNS["fedavg"], "fedprox": RUNS["fedprox"]},
    "sections": {},
    "evaluated": "last",
}
SEARCHES = {"rates": {"grid": [4.0, 8.0, 16.0], "chooses": {"rates.server": "fedavg"}}, "mu": MU}
MEETINGS = "qmsum", {"rounds": 1}, SEARCHES | {"rates": RATES | {"grid": [4.0, 8.0, 16.0]}}


@pytest.fixture(params=[MEETINGS, ("notes", TEXTS | {"rounds": 1}, SEARCHES)], ids=["meetings", "texts"])
def prepared(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A workspace with a prepared data set and a backbone: the data set's name, and a function that tunes."""
    data, params, searches = request.param
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    (tmp_path / "data/own").mkdir(parents=True)
    for name in ("checksums", "sample"):
        (tmp_path / "data" / name).symlink_to(ROOT / "data" / name)
    splits = {"train": 12, "val": 4, "test": 4}
    rows = [f"{split} {i},{'ab'[i % 2]},{split}" for split, count in splits.items() for i in range(count)]
    (tmp_path / "data/own/notes.csv").write_text("\n".join(["text,label,split", *rows]), encoding="utf-8")
    content = SMALL | {"runs": RUNS} | params
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    plan.run()
    ingest.run(data)
    prepare.run(data)
    backbone.run(content["backbone"])
    return data, lambda: tuned(params, **searches)


def test_tuning_cannot_see_test_data_and_trains_nothing_twice(prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the words of every test example replaced, nothing that is chosen changes, and nothing else is read."""
    data, tune_it = prepared
    tune_it()
    rows = read_table(layout.TUNING_TABLE)
    assert not [path for path in layout.checkpoints().glob("*") if path.is_dir()], "only the outcomes stay"
    for key in {row["chooses"] for row in rows}:
        best = min(float(row["validation_loss"]) for row in rows_of(key))
        assert [float(row["validation_loss"]) for row in rows_of(key) if row["chosen"] == "1"] == [best]
    examples = read_jsonl(layout.examples(data))
    stored = len(list(layout.store().rglob("*.safetensors")))
    assert 0 < stored <= sum(row["split"] != "test" for row in examples)
    texts = [name for name in ("query", "target", "text") if name in examples[0]]
    spoiled = [row | dict.fromkeys(texts, "spoiled") if row["split"] == "test" else row for row in examples]
    assert spoiled != examples
    write_jsonl(layout.examples(data), spoiled)
    shutil.rmtree(layout.store())
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "train_learner", lambda *arguments: pytest.fail("was trained before"))
        tune_it()
    assert len(list(layout.store().rglob("*.safetensors"))) == stored
    assert read_table(layout.TUNING_TABLE) == rows
    layout.TUNING_TABLE.unlink()
    tune_it()
    assert read_table(layout.TUNING_TABLE) == rows


@pytest.mark.parametrize("prepared", [MEETINGS], indirect=True, ids=["meetings"])
def test_a_trial_that_diverges_is_the_worst_and_ends_nothing(
    prepared: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The highest rate's loss is not finite; the table has it as inf. Another error ends the tuning."""
    trained = tuning.train_learner

    def diverging(training: Training, *others: Any) -> Any:
        if training.learning_rate == 16.0:
            raise QuorumError("round 1, client Academic, step 1: the loss is nan", code="not_finite")
        if training.algorithm.endswith("fedprox"):
            raise QuorumError("the disk is full")
        return trained(training, *others)

    _, tune_it = prepared
    monkeypatch.setattr(tuning, "train_learner", diverging)
    with pytest.raises(QuorumError, match="the disk is full"):
        tune_it()
    assert "local=16: diverged: round 1" in capsys.readouterr().err
    monkeypatch.setattr(tuning, "train_learner", trained)
    tune_it()
    rows = [row for row in read_table(layout.TUNING_TABLE) if row["value"] == "16.0"]
    assert [(row["validation_loss"], row["ended"], row["chosen"]) for row in rows] == [("inf", "divergence", "0")] * 2
