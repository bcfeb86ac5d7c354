"""Plans unlike the shipped one, through the real `dvc`: own meetings, two seeds, an encoder-decoder."""

from __future__ import annotations

import json

import pytest
from conftest import Workspace, stages_run


def test_own_meetings_become_a_client(workspace: Workspace) -> None:
    own = workspace.folder / "data" / "own" / "Clinic"
    own.mkdir(parents=True)
    for path in sorted((workspace.folder / "data/sample/qmsum/Product").rglob("*.json")):
        (own / f"own-{path.name}").write_bytes(path.read_bytes())
    workspace.params(
        learning_rate=0.001, own={"Clinic": {"folder": "data/own/Clinic"}}, runs={"fedavg": {"method": "AdaFedAvg"}}
    )
    workspace.repro("main")
    metrics = json.loads((workspace.folder / "reports" / "metrics.json").read_text())
    assert list(metrics["fedavg"]) == ["Academic", "Committee", "Product", "Clinic", "mean"]


def test_own_meetings_reach_an_experiment_in_a_temporary_copy(workspace: Workspace) -> None:
    """data/own is not in git: the copy finds it at the real root."""
    workspace.run("git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "own")
    identity = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = workspace.run("dvc", "exp", "run", "--temp", "-S", "span_end=exclusive", "prepare", env=identity)
    assert "prepare@qmsum" in stages_run(done.stdout)


def test_a_new_meeting_is_summarized(workspace: Workspace) -> None:
    meeting = workspace.folder / "meeting.txt"
    meeting.write_text("".join(f"Ann: We talk about the budget, point {i}.\n" for i in range(40)))
    arguments = ("summarize", "--client", "Clinic", "--query", "What about the budget?", str(meeting))
    done = workspace.pipeline(*arguments, "--run", "fedavg")
    assert "of 40 turns left out" in done.stderr
    assert len(done.stdout.strip()) > 0
    short = workspace.pipeline(*arguments, "--run", "fedavg-1", "--turns", "1-2")
    assert "left out" not in short.stderr
    for wrong in (("--run", "nope"), ("--run", "fedavg", "--client", "Mars"), ("--run", "fedavg", "--turns", "9")):
        failed = workspace.pipeline(*arguments, *wrong, ok=False)
        assert failed.returncode == 1
        assert failed.stderr.count("\n") == 1
        assert failed.stderr.startswith("error: --")


def test_pruning_frees_finished_checkpoints_and_nothing_runs_again(workspace: Workspace) -> None:
    assert "removed" in workspace.pipeline("prune").stderr
    assert workspace.repro("main") == []
    assert workspace.pipeline("prune").stderr == ""


def test_two_seeds_and_an_encoder_decoder(workspace: Workspace) -> None:
    workspace.params(
        own={},
        seeds=[1, 2],
        backbone="tiny-bart",
        runs={"fedavg": {"method": "AdaFedAvg"}, "fedselectkd": {"method": "AdaFedSelectKD"}},
        studies={"main": ["fedavg", "fedselectkd"]},
    )
    workspace.repro("report")
    reports = workspace.folder / "reports"
    both = json.loads((reports / "metrics.json").read_text())["fedavg"]["Product"]
    each = [
        json.loads((reports / "metrics" / "main" / f"seed-{n}.json").read_text())["fedavg"]["Product"] for n in (1, 2)
    ]
    assert both["local_loss"] == pytest.approx(sum(one["local_loss"] for one in each) / 2, abs=1e-4)
    assert both["rouge1"] == pytest.approx(sum(one["rouge1"] for one in each) / 2, abs=1e-2)
    page = (reports / "paper.html").read_text()
    assert "<dd>4, of 4 trainings</dd>" in page
    assert "2 seeds: intervals say" in page
    assert {path.stem for path in (reports / "analysis" / "deciles").iterdir()} == {"fedselectkd-1", "fedselectkd-2"}
    freed = workspace.pipeline("prune", "--unplanned").stderr
    assert "removed" in freed, "the other backbone's prefixes and summaries"
    assert workspace.repro("report") == []
