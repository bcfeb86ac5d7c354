"""Fair tuning: which trials there are, and what they are judged by."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from workspaces import ROOT, SMALL

from pipeline.errors import QuorumError
from pipeline.plan.learner import Training
from pipeline.plan.schema import Params
from pipeline.plan.training import train_order
from pipeline.runs import tuning
from pipeline.runs.index import Index
from pipeline.runs.tuning import in_words, tune, with_choices, with_value
from pipeline.stages import backbone, ingest, plan, prepare
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl, write_jsonl, write_text
from pipeline.workspace.tables import read_table, write_table

RUNS: dict[str, Any] = SMALL["runs"] | {
    "fedprox": {"setting": "domains", "method": "AdaFedProx", "mu": 0.01},
    "fedavgm": {"setting": "domains", "method": "AdaFedAvgM", "server_momentum": 0.5},
}
RATES = {"grid": [1.0, 2.0, 4.0], "chooses": {"rates.server": "fedavg", "rates.local": "fedavg-local"}}
MU = {"grid": [0.01, 0.1], "chooses": {"runs.fedprox.mu": "fedprox"}}
MOMENTUM = {"grid": [0.5, 0.9], "chooses": {"runs.fedavgm.server_momentum": "fedavgm"}}
PARAMS = Params.model_validate(SMALL | {"runs": RUNS})
NOTES: Any = {"task": "classify", "source": "notes", "file": "data/own/notes.csv", "take": {"test": {"count": 2}}}
TEXTS = {"sources": ["notes"], "backbones": ["tiny-bert"], "backbone": "tiny-bert", "data": {"notes": NOTES}}
TEXTS |= {"settings": {"domains": {"data": "notes", "kind": "skewed", "clients": 2}}, "evaluated": "last", "rounds": 1}
TEXTS |= {"runs": {name: RUNS[name] for name in ("fedavg", "fedprox")}, "sections": {}}
Given = Callable[[Callable[[Training], float]], list[Training]]
WRONG = [
    ("runs.fedprox.muu", "fedprox", "runs.fedprox.muu: unknown key"),
    ("rates.ours", "fedprox", "rates.ours: unknown key"),
    ("scale.x", "fedprox", "scale.x: is no key; correct it"),
    ("lambda", "fedprox", "lambda: Input should be less than"),
    ("rates.server", "zeroshot", "rates.server: run zeroshot trains nothing; choose another"),
    ("runs.fedselectkd.kd_from_round", "fedselectkd", "kd_from_round: 9, but of 2 rounds"),
    ("target_tokens", "fedprox", "target_tokens: changes a run's data or what is stored of them"),
    ("settings.domains.validation_examples", "fedprox", "validation_examples: changes a run's data"),
]
DOTTED = [("rates.server", "learning_rate"), ("data.qmsum.rates.server", "learning_rate"), ("rounds", "rounds")]


def tuned(params: dict[str, Any], **searches: Any) -> None:
    """Write params.yaml with searches, and tune."""
    content = SMALL | {"runs": RUNS} | params | {"tune": {"seed": 7, "searches": searches}}
    Path("params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    tune()


def rows_of(key: str) -> list[dict[str, str]]:
    return [row for row in read_table(layout.TUNING_TABLE) if row["chooses"] == key]


def tried(key: str) -> list[float]:
    return [float(row["value"]) for row in rows_of(key)]


@pytest.fixture
def given(short: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """Lets trials have a loss in their best round, without data, and 1 more in their last; lists what is trained."""
    monkeypatch.setattr(tuning, "training_key", lambda *_: "key")
    monkeypatch.setattr(tuning, "_drawn", lambda params, run: tuning.TrialData({}, cast(Index, None), "d"))

    def give(loss: Callable[[Training], float]) -> list[Training]:
        done: list[Training] = []

        def trained(training: Training, *_: object) -> tuple[Any, Any]:
            done.append(training)
            best = {"A": SimpleNamespace(round=1, loss=loss(training))}
            last = SimpleNamespace(known_loss=lambda owner: loss(training) + 1)
            return SimpleNamespace(round=2, stale=3, last=[last]), SimpleNamespace(best={"server": best, "local": best})

        monkeypatch.setattr(tuning, "train_learner", trained)
        return done

    return give


@pytest.mark.parametrize(
    ("best", "grid"), [(2.0, [1.0, 2.0, 4.0]), (7.0, [1.0, 2.0, 4.0, 8.0, 16.0]), (0.9, [0.5, 1.0, 2.0, 4.0])]
)
def test_a_best_value_at_an_end_widens_the_grid_for_all_keys(given: Given, best: float, grid: list[float]) -> None:
    """By the grid's own step, until no best is at an end. AdaProx is best at 2 in any case."""
    done = given(lambda training: abs(training.learning_rate - (2.0 if "fedprox" in training.algorithm else best)))
    tuned({}, rates=RATES | {"chooses": RATES["chooses"] | {"runs.fedprox.learning_rate": "fedprox"}})
    assert tried("rates.server") == tried("rates.local") == tried("runs.fedprox.learning_rate") == grid
    assert [row["value"] for row in rows_of("runs.fedprox.learning_rate") if row["chosen"] == "1"] == ["2.0"]
    assert {training.seed for training in done} == {7}


def test_a_value_that_stays_best_at_an_end_is_reported(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    """The smaller mu, the better: a tenth of the last, four times. Beyond a momentum of 0.9 1.62 is not below 1."""
    given(lambda training: training.hyperparameters.get("mu") or -training.hyperparameters["server_momentum"])
    tuned({}, mu=MU, momentum=MOMENTUM)
    assert tried("runs.fedprox.mu") == [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1]
    assert tried("runs.fedavgm.server_momentum") == [0.5, 0.9]
    printed = capsys.readouterr().err
    for least in ("1e-06 has the least validation loss, 0.0", "0.9 has the least validation loss, -0.9"):
        assert f"{least}, at an end of what was tried" in printed


def test_a_trial_is_judged_by_the_evaluated_round_and_later_searches_have_what_it_chose(given: Given) -> None:
    """The losses of last rounds are higher by 1."""
    done = given(lambda training: abs(training.learning_rate - 2.0))
    for evaluated, least in (("best", 0.0), ("last", 1.0)):
        tuned({"evaluated": evaluated}, rates=RATES, mu=MU)
        assert [row["validation_loss"] for row in rows_of("rates.server")] == [str(least + more) for more in (1, 0, 2)]
    assert {training.learning_rate for training in done if "fedprox" in training.algorithm} == {2.0}


def test_a_trial_that_diverges_is_the_worst_and_ends_nothing(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    """The highest rate's loss is not finite; the table has it as inf. Another error ends the tuning."""

    def loss(training: Training) -> float:
        if training.algorithm.endswith("fedprox"):
            raise QuorumError("the disk is full")
        if training.learning_rate == 4.0:
            raise QuorumError("round 1, client Academic, step 1: the loss is nan", code="not_finite")
        return abs(training.learning_rate - 2.0)

    given(loss)
    with pytest.raises(QuorumError, match="the disk is full"):
        tuned({}, rates=RATES, mu=MU)
    assert "server=4: diverged: round 1" in capsys.readouterr().err
    outcome = {"value": "4.0", "validation_loss": "inf", "ended": "divergence", "chosen": "0"}
    assert outcome.items() <= rows_of("rates.server")[-1].items()


def test_rows_of_other_scales_stay_and_one_in_another_precision_is_refused(given: Given) -> None:
    """Before any other is trained."""
    done = given(lambda training: abs(training.learning_rate - 2.0))
    tuned({"scale": "large"}, rates=RATES)
    for _ in range(2):
        tuned({}, rates=RATES)
        assert [row["scale"] for row in rows_of("rates.server")] == ["large"] * 3 + ["small"] * 3
    write_table(layout.TUNING_TABLE, [read_table(layout.TUNING_TABLE)[-1] | {"precision": "fp8"}])
    done.clear()
    with pytest.raises(QuorumError, match="was computed in fp8, and this plan says"):
        tuned({}, rates=RATES)
    assert done == []


@pytest.mark.parametrize(("key", "run", "message"), WRONG)
def test_a_wrong_trial_is_one_line(given: Given, key: str, run: str, message: str) -> None:
    done = given(lambda training: 0.0)
    with pytest.raises(QuorumError, match=rf"^.*{re.escape(message)}.*\Z"):
        tuned({}, wrong={"grid": [2.0, 9.0], "chooses": {key: run}})
    with pytest.raises(QuorumError, match=r"tune\.searches: is empty"):
        tuned({})
    assert done == []


@pytest.mark.parametrize(("key", "field"), DOTTED)
def test_a_value_is_set_at_its_dotted_key(key: str, field: str) -> None:
    """Nothing else in the run's training changes."""
    plain, changed = (train_order(params, "fedprox").training for params in (PARAMS, with_value(PARAMS, key, 5.0)))
    assert getattr(changed, field) == 5
    assert [name for name in Training.model_fields if getattr(plain, name) != getattr(changed, name)] == [field]


def test_the_first_least_loss_is_chosen_and_what_the_cap_ended_near_it_is_reported() -> None:
    """0.009 nats above the best is near, 0.011 is not; what patience ended has had its rounds."""
    capped, ended = {"chooses": "k", "ended": "cap"}, {"chooses": "k", "ended": "patience"}
    trials = [(capped, 2.5), (capped, 2.509), (capped, 2.511), (ended, 2.5), (ended, 2.501)]
    rows = [about | {"value": value, "validation_loss": loss} for value, (about, loss) in enumerate(trials, 1)]
    rows = with_choices([*rows, ended | {"chooses": "other", "value": 0.0, "validation_loss": 9.0}])
    assert [row["chosen"] for row in rows] == [1, 0, 0, 0, 0, 1]
    assert "the cap on rounds ended 2, near the best" in list(in_words(rows, [0.0, 5.0]))[1]


def tune_texts() -> list[dict[str, str]]:
    """Tune on texts in a workspace; the rows of the table."""
    tuned(TEXTS, rates={"grid": [4.0, 8.0, 16.0], "chooses": {"rates.server": "fedavg"}}, mu=MU)
    return read_table(layout.TUNING_TABLE)


def test_tuning_cannot_see_test_data_and_trains_nothing_twice(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the words of every test example replaced, nothing that is chosen changes, and nothing else is read."""
    splits = {"train": 12, "val": 4, "test": 4}
    texts = [f"{split} {i},{'ab'[i % 2]},{split}" for split, count in splits.items() for i in range(count)]
    write_text(short / "data/own/notes.csv", "\n".join(["text,label,split", *texts]))
    for name in ("checksums", "sample"):
        (short / "data" / name).symlink_to(ROOT / "data" / name)
    write_text(short / "params.yaml", yaml.safe_dump(SMALL | TEXTS))
    plan.run()
    for stage, item in ((ingest, "notes"), (prepare, "notes"), (backbone, "tiny-bert")):
        stage.run(item)
    rows = tune_texts()
    assert not [path for path in layout.checkpoints().glob("*") if path.is_dir()], "only the outcomes stay"
    for key in {row["chooses"] for row in rows}:
        best = min(float(row["validation_loss"]) for row in rows_of(key))
        assert [float(row["validation_loss"]) for row in rows_of(key) if row["chosen"] == "1"] == [best]
    examples = read_jsonl(layout.examples("notes"))
    stored = len(list(layout.store().rglob("*.safetensors")))
    assert 0 < stored <= sum(row["split"] != "test" for row in examples)
    spoiled = [row | {"text": "spoiled"} if row["split"] == "test" else row for row in examples]
    assert spoiled != examples
    write_jsonl(layout.examples("notes"), spoiled)
    shutil.rmtree(layout.store())
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "train_learner", lambda *arguments: pytest.fail("was trained before"))
        assert tune_texts() == rows
    assert len(list(layout.store().rglob("*.safetensors"))) == stored
    layout.TUNING_TABLE.unlink()
    assert tune_texts() == rows
