"""What stages write, what they do again, and how they end on bad input.

On samples, with tiny backbones, for runs of every task and setting. What readers refuse is in the tests of their rooms.
"""

import html
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Workspace
from labelled import EVERY, RUNS
from test_ground_rules import FEW
from workspaces import ROOT, files_of, stand_ins

from pipeline import __main__ as command_line
from pipeline.federated.blobs import FILE
from pipeline.runs.index import planned_key
from pipeline.runs.result_files import read_result
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, write_bytes
from pipeline.workspace.tables import read_table

LEFT_OUT = ("deep", "news-full")
MADE = [run for run in EVERY["runs"] if run not in LEFT_OUT]


def rows_of(workspace: Workspace, run: str, seed: int = 1) -> list[dict[str, Any]]:
    with workspace.entered():
        found: list[dict[str, Any]] = read_result(run)[seed]["scores"]["examples"]
    return found


def manifest(workspace: Workspace, setting: str, seed: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = read_json(workspace.folder / layout.partition(setting, seed))["manifest"]
    return found


@pytest.mark.parametrize("run", MADE)
def test_every_test_example_is_predicted_and_scored_at_every_seed(built: Workspace, run: str) -> None:
    with built.entered():
        seeds = sorted(read_result(run))
    assert seeds
    for seed in seeds:
        own = manifest(built, EVERY["runs"][run]["setting"], seed)
        wanted = [i for splits in own.values() for i in splits["test"]]
        predicted = read_jsonl(built.folder / layout.predictions(layout.run_id(run, seed)))
        scored = rows_of(built, run, seed)
        assert [row["id"] for row in predicted] == [row["id"] for row in scored] == wanted
        assert all(row["loss_sum"] >= 0 for row in predicted)
        assert {row["prediction"] is None for row in predicted} == {EVERY["runs"][run].get("decode") is False}


@pytest.mark.parametrize("run", MADE)
def test_the_history_has_a_row_a_round_and_evaluated_client(built: Workspace, run: str) -> None:
    """A late client has two rounds of four, and an untrained model none."""
    own = manifest(built, EVERY["runs"][run]["setting"])
    clients = [client for client, splits in own.items() if splits["val"]]
    rows = read_table(built.folder / layout.history(layout.run_id(run, 1)))
    late = EVERY["runs"][run].get("late", [])
    rounds = () if EVERY["runs"][run]["method"] == "ZeroShot" else (1, 2, 3, 4) if late else (1, 2)
    expected = [(n, client) for n in rounds for client in clients if n > 2 or client not in late]
    assert [(int(row["round"]), row["client"]) for row in rows] == expected


@pytest.mark.parametrize("run", LEFT_OUT)
def test_a_run_that_is_left_out_has_no_result(built: Workspace, run: str) -> None:
    """One adapts more layers than its backbone has, the scale omits the other."""
    with built.entered():
        assert read_result(run) == {}
    assert not (built.folder / layout.backbone("tiny-distilbert") / "model.safetensors").exists()


@pytest.mark.parametrize("run", ["fedselectkd", "news-fedavg"])
def test_a_run_that_comes_back_is_scored_as_before(copy: Workspace, run: str) -> None:
    before, runs = rows_of(copy, run), copy.read_params()["runs"]
    for omitted in (True, False):
        copy.params(omit=["news-full", run] if omitted else ["news-full"])
        copy.stage("plan")
        with stand_ins():
            for stage in ("encode", "train", "predict", "evaluate"):
                copy.stage(stage, runs[run]["setting"] if stage == "encode" else run)
        with copy.entered():
            assert bool(read_result(run)) != omitted
    assert rows_of(copy, run) == before
    assert not (copy.folder / layout.MODELS / run / "left_out.json").exists()


@pytest.mark.parametrize("run", ["fedavg-local", "news-fedavg"])
def test_one_training_under_two_names_is_made_once(copy: Workspace, run: str) -> None:
    """To the measured second: one checkpoint serves both."""
    row, names = copy.read_params()["runs"][run], ("news-again", "news-other")
    copy.params(runs=copy.read_params()["runs"] | dict.fromkeys(names, row), rounds=3)
    copy.stage("plan")
    copy.stage("encode", row["setting"])
    for name in names:
        copy.stage("train", name)
    again, other = (read_json(copy.folder / f"work/timings/train/{name}/1.json") for name in names)
    assert again == other
    again, other = (files_of(copy.folder / layout.MODELS / name) for name in names)
    assert again == other


@pytest.mark.parametrize(("run", "owner", "left"), [("fedselectkd", "Academic", 0), ("news-fedavg", "server", 1)])
def test_a_damaged_model_is_trained_again_to_the_same_bits(
    copy: Workspace, capsys: pytest.CaptureFixture[str], run: str, owner: str, left: int
) -> None:
    path = copy.folder / layout.adapter(f"{run}/1", owner)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    copy.stage("train", run)
    assert capsys.readouterr().err.count("has been trained") == left, "at the other seeds"
    assert path.read_bytes() == content


def test_training_begins_again_over_a_damaged_checkpoint(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(copy.folder / "models/fedavg/1/adapters")
    shutil.rmtree(copy.folder / "models/fedavg")
    with copy.entered():
        write_bytes(Path("work/checkpoints", str(planned_key("fedavg/1")), FILE), b"SQLite format 3")
    copy.stage("train", "fedavg")
    assert "damaged checkpoint (file is not a database); it was removed" in capsys.readouterr().err
    assert files_of(copy.folder / "models/fedavg/1/adapters") == before


def test_half_removed_models_are_none(copy: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that is killed while it clears its folder leaves no note of what was trained there."""

    def killed(folder: Path, ignore_errors: bool) -> None:
        raise KeyboardInterrupt

    copy.params(runs=copy.read_params()["runs"] | {"news-fedavg": RUNS["news-fedavg"] | {"rounds": 1}})
    copy.stage("plan")
    monkeypatch.setattr("pipeline.stages.train.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        copy.stage("train", "news-fedavg")
    assert not (copy.folder / layout.trained_as("news-fedavg/1")).exists()


@pytest.mark.parametrize(("run", "others"), [("fedselectkd", 7), ("subjects-fedopt", 2)])
def test_one_run_decodes_for_all(copy: Workspace, capsys: pytest.CaptureFixture[str], run: str, others: int) -> None:
    """Cached texts are those that were predicted; a stage that finds all of them decodes nothing."""
    shutil.rmtree(copy.folder / "work/generated")
    before = files_of(copy.folder / layout.PREDICTIONS / run)
    copy.stage("predict", run)
    assert f"predict {run}/1 and {others} more" in capsys.readouterr().err
    copy.stage("predict", run)
    assert "predict" not in capsys.readouterr().err
    assert files_of(copy.folder / layout.PREDICTIONS / run) == before


def test_the_plan_names_what_is_left_out_or_in_no_table(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    copy.params(runs=EVERY["runs"] | {"averaged": RUNS["news-fedavg"]})
    copy.stage("plan")
    printed = capsys.readouterr().err
    assert "plan: runs.deep: left out: adapted_layers: 15, but tiny-llama has 4 decoder layers\n" in printed
    assert "plan: runs.averaged: no table will show it" in printed


def test_a_smaller_plan_is_pruned_and_finds_what_it_needs(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    def stored() -> int:
        return len(list((copy.folder / "work/store").rglob("*.safetensors")))

    def encode() -> None:
        for setting in FEW["settings"]:
            copy.stage("encode", setting)

    copy.params(**FEW, scales=None)
    copy.stage("plan")
    entries = stored()
    shutil.rmtree(copy.folder / "data/encoded")
    encode()
    copy.call("prune", "--unplanned")
    assert 0 < stored() < entries
    capsys.readouterr()
    encode()
    counts = re.findall(r"(\d+) examples, (\d+) already in the store", capsys.readouterr().err)
    assert counts
    assert all(examples == known for examples, known in counts)
    with stand_ins():
        copy.stage("predict", "fedselectkd")
    assert "predict" not in capsys.readouterr().err


def test_the_tour_quotes_its_runs_and_the_committed_result(copy: Workspace) -> None:
    runs = {name: EVERY["runs"][name] for name in ("zeroshot", "fedavg", "fedavg-local", "fedselectkd")}
    copy.params(page="tour", backbones=["tiny-llama"], runs=runs, sections={"main": list(runs)}, scales=None)
    shutil.copytree(ROOT / "experiments/full/reports", copy.folder / "experiments/full/reports")
    with stand_ins():
        for stage in ("plan", "analyze", "report"):
            copy.stage(stage)
    page = (copy.folder / "reports/report.html").read_text(encoding="utf-8")
    quoted = {line["prediction"] for line in read_jsonl(copy.folder / "reports/predictions/fedselectkd/1.jsonl")}
    assert any(html.escape(text) in page for text in quoted if text)
    effects = read_table(ROOT / "experiments/full/reports/tables/comparisons.csv")
    assert all(row["terms"] in page for row in effects if row["effect"])


PLAN, MEETING = "data/plan/encode/domains.json", "data/raw/qmsum/Product/train/Spr001.json"
WEIGHTS, PREDICTIONS = "models/backbones/tiny-llama", "reports/predictions/fedavg/1.jsonl"
ADAPTER = "models/news-fedavg/1/adapters/server.safetensors"


@pytest.mark.parametrize(
    "case",
    [
        ("encode domains", PLAN, b'{"code": {}}', f"{PLAN}: not a EncodeOrder ("),
        ("prepare qmsum", MEETING, b'{"a": \n', f"{MEETING}: line 2: malformed JSON ("),
        ("encode domains", f"{WEIGHTS}/model.safetensors", b"x", f"{WEIGHTS}: damaged backbone ("),
        ("predict news-fedavg", ADAPTER, b"x", f"{ADAPTER}: damaged adapter (its sha256 is not the one in "),
        ("evaluate fedavg", PREDICTIONS, b"", f"{PREDICTIONS}: is missing; run `dvc repro"),
    ],
    ids=["a plan of another form", "a meeting", "a backbone", "a changed adapter", "no predictions"],
)
def test_one_line_and_exit_status_one(
    copy: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: tuple[Any, ...]
) -> None:
    command, file, content, message = case
    monkeypatch.setattr(sys, "argv", ["pipeline", *command.split()])
    (copy.folder / file).unlink()  # a link into DVC's cache
    if content:
        (copy.folder / file).write_bytes(content)
    with copy.entered(), pytest.raises(SystemExit) as ended:
        command_line.cli()
    assert ended.value.code == 1
    printed = capsys.readouterr().err
    (error,) = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert message in error
    assert "Traceback" not in printed
    assert not list(copy.folder.rglob("*.tmp"))


def test_debug_shows_the_traceback(built: Workspace) -> None:
    command = (sys.executable, "-m", "pipeline", "predict", "nope")
    line = "error: data/plan/predict/nope.json: is missing; run `dvc repro plan`\n"
    done = built.run(*command, ok=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)
    assert "Traceback" in built.run(*command, ok=False, PIPELINE_DEBUG="1").stderr
