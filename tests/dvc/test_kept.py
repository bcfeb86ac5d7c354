"""A long experiment: what is kept of its finished runs, what is still missing, and the page that is made from it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, Workspace
from made_results import run_of

from pipeline.errors import QuorumError
from pipeline.plan.orders import RunRow
from pipeline.runs import auditing, kept
from pipeline.runs.whole_seeds import of_whole_seeds
from pipeline.stages import page
from pipeline.workspace import layout

RUNS = {
    "single": {"method": "AdaSingle"},
    "centralized": {"method": "AdaCentralized"},
    "fedavg": {"method": "AdaFedAvg"},
    "fedavg-local": {"method": "AdaFedAvg", "evaluate": "local"},
    "fedselectkd": {"method": "AdaFedSelectKD"},
}
MORE = {
    "kd-random": {"method": "AdaFedSelectKD", "select": "random", "decode": False},
    "fedselectkd-own": {"method": "AdaFedSelectKD", "local_start": "own", "seeds": [11]},
}
TWO: dict[str, Any] = {
    "seeds": [11, 12],
    "folds": {12: "first"},
    "runs": RUNS,
    "more_runs": MORE,
    "rounds": 2,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two seeds that test other meetings, every run evaluated and kept."""
    workspace = Workspace.laid(tmp_path_factory.mktemp("kept"), **SMALL | TWO)
    workspace.make("main", "more")
    with workspace.entered():
        kept.take(kept.missing())
    return workspace


@pytest.fixture(scope="module")
def made(whole: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The same where models and predictions are gone."""
    workspace = whole.copied(tmp_path_factory.mktemp("made") / "copy")
    for folder in ("models/main", "models/more", "reports", "work/generated", "work/evaluated", "work/store"):
        shutil.rmtree(workspace.folder / folder)
    return workspace


def page_of(workspace: Workspace) -> str:
    with workspace.entered():
        page.run()
    return (workspace.folder / layout.REPORT).read_text(encoding="utf-8")


def test_every_finished_run_is_kept_and_none_is_missing(made: Workspace) -> None:
    """A run that is made at one seed is kept at that seed alone."""
    found = {path.stem for path in (made.folder / "results").rglob("*.json")}
    everywhere = [*RUNS, "kd-random"]
    assert found == {f"{run}-{seed}" for run in everywhere for seed in (11, 12)} | {"fedselectkd-own-11"}
    with made.entered():
        assert kept.missing() == []


def test_what_a_training_took_is_kept(made: Workspace) -> None:
    """The seconds of its rounds, of what this machine has trained."""
    files = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (made.folder / "results/main").glob("*")
    }
    assert all(one["training_seconds"] > 0 for one in files.values())


def test_the_page_needs_no_model(made: Workspace) -> None:
    """Each seed has a table of its own; the row of one seed alone stands there and not among the pooled ones."""
    text = page_of(made)
    pooled, first, second = re.split("<h3>Run [AB] alone", text.partition('id="main"')[2].partition("The paper")[0])
    assert "fedselectkd-own" in first
    assert "fedselectkd-own" not in pooled + second
    assert "still to come" not in text
    drawn = (made.folder / "reports/figures/main/start_by_loss.svg").read_text(encoding="utf-8")
    assert "own, distil what is sure" in drawn, "of run A, in which it is made"
    alone = json.loads((made.folder / layout.seed_metrics("main", 11)).read_text(encoding="utf-8"))
    assert "fedselectkd-own" in alone


def test_the_pooled_table_is_over_all_meetings(made: Workspace) -> None:
    """Of the sample two meetings a client are tested at one seed and some others at the other."""
    page_of(made)
    metrics = json.loads((made.folder / layout.all_metrics("main")).read_text(encoding="utf-8"))
    files = [json.loads((made.folder / f"results/main/single-{seed}.json").read_text()) for seed in (11, 12)]
    tested = [{row["id"] for row in one["scores"]["examples"]} for one in files]
    assert not tested[0] & tested[1]
    assert metrics["single"]["mean"]["examples"] == sum(map(len, tested))


def test_a_changed_knob_names_the_runs_that_it_changes(made: Workspace, tmp_path: Path) -> None:
    """Another τ: the runs that distil selectively, at each seed at which they are made."""
    copy = made.copied(tmp_path / "copy")
    copy.params(tau=3.0)
    copy.stage("plan")
    with copy.entered():
        assert sorted(kept.missing()) == [
            "evaluate-more@fedselectkd-own-11",
            "evaluate-more@kd-random-11",
            "evaluate-more@kd-random-12",
            "evaluate@fedselectkd-11",
            "evaluate@fedselectkd-12",
        ]
    assert "5 planned runs are still to come" in page_of(copy)


def test_what_is_not_as_planned_is_not_kept(made: Workspace, tmp_path: Path) -> None:
    """Models are gone, so nothing is known to be trained as planned; and a stage that nobody plans is named."""
    with made.entered():
        with pytest.raises(QuorumError, match=r"training.json: is of another plan; run `dvc repro evaluate@single-11`"):
            kept.take(["evaluate@single-11"])
        with pytest.raises(QuorumError, match="evaluate@gone-11: is no stage of a planned run"):
            kept.take(["evaluate@gone-11"])


@pytest.mark.parametrize(
    ("changed", "stale"),
    [({"use_stemmer": True}, "scores/main/single-11.json"), ({"max_tokens": 9}, "predictions/main/single-11.jsonl")],
    ids=["scoring", "decoding"],
)
def test_scores_of_another_plan_are_not_kept(
    whole: Workspace, tmp_path: Path, changed: dict[str, Any], stale: str
) -> None:
    """The models are as planned, and what was made of them is not."""
    copy = whole.copied(tmp_path / "copy")
    copy.params(**changed)
    copy.stage("plan")
    with copy.entered(), pytest.raises(QuorumError, match=f"{stale}: is of another plan; run `dvc repro"):
        kept.take(["evaluate@single-11"])


def test_what_another_plan_left_is_not_kept_though_the_planned_is_known(whole: Workspace, tmp_path: Path) -> None:
    """Shorter summaries, and back to the plan, whose own are still in work/."""
    copy = whole.copied(tmp_path / "copy")
    for tokens in (2, whole.read_params()["max_tokens"]):
        copy.params(max_tokens=tokens)
        copy.stage("plan")
        if tokens == 2:
            copy.stage("generate", "main/single-11")
            copy.stage("evaluate", "main/single-11")
    with copy.entered(), pytest.raises(QuorumError, match=r"predictions/main/single-11.jsonl: is of another plan; run"):
        kept.take(["evaluate@single-11"])
    copy.stage("generate", "main/single-11")
    with copy.entered(), pytest.raises(QuorumError, match=r"scores/main/single-11.json: is of another plan; run"):
        kept.take(["evaluate@single-11"])


def test_without_run_a_nothing_is_called_its_own(made: Workspace, tmp_path: Path) -> None:
    """Whether the first seed that is kept is that of run A is read from the plan."""
    copy = made.copied(tmp_path / "copy")
    for path in (copy.folder / "results").rglob("*-11.json"):
        path.unlink()
    text = page_of(copy)
    assert "of run A, in which all cells are made" not in text
    assert "Run A alone" not in text
    assert "With a client’s own start, in run A" not in text


def test_another_decoding_leaves_trainings_and_asks_for_every_summary(made: Workspace, tmp_path: Path) -> None:
    """Runs that write none stay kept."""
    copy = made.copied(tmp_path / "copy")
    copy.params(max_tokens=9)
    copy.stage("plan")
    with copy.entered():
        assert {stage.partition("@")[2] for stage in kept.missing()} == {
            *(f"{run}-{seed}" for run in RUNS for seed in (11, 12)),
            "fedselectkd-own-11",
        }


def kept_in_bf16(made: Workspace, folder: Path, seed: str) -> Workspace:
    """A copy in which the results of a seed, or of all, say that they were made in bf16."""
    copy = made.copied(folder)
    for path in sorted((copy.folder / "results").rglob(f"*-{seed}.json")):
        one = json.loads(path.read_text(encoding="utf-8")) | {"precision": "bf16"}
        path.unlink()
        path.write_text(json.dumps(one), encoding="utf-8")
    return copy


@pytest.mark.parametrize("seed", ["11", "*"])
def test_what_is_missing_is_not_made_in_another_precision(made: Workspace, tmp_path: Path, seed: str) -> None:
    copy = kept_in_bf16(made, tmp_path / "copy", seed)
    (copy.folder / "results/main/single-12.json").unlink()
    with copy.entered(), pytest.raises(QuorumError, match="was made in bf16, and this plan says fp32; go on"):
        kept.to_make()


def test_where_nothing_is_missing_no_precision_is_refused(
    made: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept_in_bf16(made, tmp_path / "copy", "*").entered():
        capsys.readouterr()
        assert kept.to_make() == []
    assert capsys.readouterr().err == "results: nothing is missing\n"


def test_two_precisions_never_stand_in_one_table(made: Workspace, tmp_path: Path) -> None:
    copy = kept_in_bf16(made, tmp_path / "copy", "11")
    with copy.entered(), pytest.raises(QuorumError, match=r"-11\.json in bf16, .*-12\.json in fp32: two precisions"):
        page.run()


def test_an_audit_is_refused_in_another_precision_than_its_table(made: Workspace, tmp_path: Path) -> None:
    with (
        kept_in_bf16(made, tmp_path / "copy", "11").entered(),
        pytest.raises(QuorumError, match="was made in bf16, and this plan says fp32; go on"),
    ):
        auditing.audit()


def test_the_page_is_made_where_no_training_could_go_on(made: Workspace, tmp_path: Path) -> None:
    """All results are of bf16, and this plan says fp32: the page computes nothing that a precision would change."""
    assert "<dd>bf16</dd>" in page_of(kept_in_bf16(made, tmp_path / "copy", "*"))


@pytest.mark.parametrize(("what", "value"), [("code", "other"), ("threads", 99)])
def test_what_a_run_was_made_with_is_told_and_changes_no_identity(made: Workspace, what: str, value: object) -> None:
    """What was trained by other code, or with other threads, stays a result, and the page says so."""
    path = made.folder / "results/main/single-11.json"
    before = path.read_text(encoding="utf-8")
    path.write_text(json.dumps(json.loads(before) | {what: value}), encoding="utf-8")
    try:
        with made.entered():
            assert kept.missing() == []
        assert "in another precision, or with other threads: single-11." in page_of(made)
    finally:
        path.write_text(before, encoding="utf-8")


def rows_of(*ids: str) -> list[RunRow]:
    """Runs of the main table, as in `fedavg-11`."""
    found = []
    for identity in ids:
        name, _, seed = identity.rpartition("-")
        found.append(run_of(name)[0].model_copy(update={"id": f"main/{identity}", "seed": int(seed)}))
    return found


@pytest.mark.parametrize(
    ("there", "shared"),
    [
        (["a-1", "b-1", "a-2", "b-2"], ["a-1", "b-1", "a-2", "b-2"]),
        (["a-1", "b-1", "a-2"], ["a-1", "b-1"]),  # the second seed is not whole
        (["a-1", "a-2"], ["a-1", "a-2"]),  # no seed is: what is kept at all of them
        (["a-1", "a-2", "b-2"], ["a-2", "b-2"]),
        (["a-1", "b-2"], ["a-1"]),  # nothing is: the first seed alone
        (["a-1", "b-2", "c-2"], ["b-2", "c-2"]),  # the seed at which most are
    ],
)
def test_rows_of_one_table_are_over_the_same_meetings(there: list[str], shared: list[str]) -> None:
    found = of_whole_seeds(rows_of(*there), rows_of("a-1", "b-1", "a-2", "b-2"))
    assert [row.id.removeprefix("main/") for row in found] == shared
