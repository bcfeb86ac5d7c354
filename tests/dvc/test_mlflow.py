"""What MLflow's store says of the runs: a projection of files, and how each training ended."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Workspace
from workspaces import BOTH

from pipeline.errors import QuorumError
from pipeline.federated.history import Round
from pipeline.runs import tracking

NEW = {"learning_rate": 0.005, "rounds": 3}
"""Knobs of a plan whose trainings have not been made."""
TRAINING = """
import os, signal, time
from pipeline.runs.tracking import live
from pipeline.stages import train

with live("main/fedavg-1") as on_round:
    def told(rows):
        on_round(rows)
        if rows:
            {after_a_round}
    train.run("main/fedavg-1", told)
"""


def rows(workspace: Workspace, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(workspace.folder / "mlflow.db")) as store:
        return list(store.execute(query, values))


def names(workspace: Workspace) -> list[str]:
    return sorted(name for (name,) in rows(workspace, "select name from runs where lifecycle_stage = 'active'"))


def statuses(workspace: Workspace, run: str) -> list[str]:
    """Of all that MLflow has under a run's name, the oldest first."""
    return [s for (s,) in rows(workspace, "select status from runs where name = ? order by start_time", run)]


def run_of(workspace: Workspace, name: str) -> str:
    ((identity,),) = rows(workspace, "select run_uuid from runs where name = ?", name)
    return str(identity)


def planned_anew(workspace: Workspace) -> Workspace:
    """With a plan of another training."""
    workspace.params(**NEW)
    workspace.stage("plan")
    return workspace


def test_every_run_is_there_once_and_finished(built: Workspace) -> None:
    """But for the two that the backbone cannot make; beside them stand two pages and what is above them all."""
    made = [*BOTH["runs"], *(run for run in BOTH["more_runs"] if run not in ("fedavg-endless", "deep"))]
    found = [name for name in names(built) if name.endswith("-1")]
    assert found == sorted(f"{run}-1" for run in made)
    assert len(names(built)) == len(made) + 3
    assert {status for (status,) in rows(built, "select status from runs")} == {"FINISHED"}


def test_the_experiment_opens_as_model_training(built: Workspace) -> None:
    tags = dict(rows(built, "select key, value from experiment_tags"))
    assert tags["mlflow.experimentKind"] == "custom_model_development"


def test_a_run_has_its_knobs_by_their_names_in_params_yaml(built: Workspace) -> None:
    known = dict(rows(built, "select key, value from params where run_uuid = ?", run_of(built, "fedselectkd-1")))
    wanted = {
        "tau": "5.0",
        "lambda": "0.2",
        "method": "AdaFedSelectKD",
        "seed": "1",
        "max_tokens": "12",
        "backbone": "tiny-llama",
    }
    assert {knob: known[knob] for knob in wanted} == wanted


def test_a_run_has_metrics_a_round_and_scores_at_the_end(built: Workspace) -> None:
    found = set(rows(built, "select key, step from metrics where run_uuid = ?", run_of(built, "fedselectkd-1")))
    assert {(f"Academic/{name}", n) for name in ("validation_loss", "share_distilled") for n in (1, 2)} <= found
    assert {("mean/rouge1", 0), ("mean/loss", 0)} <= found


def test_a_run_has_its_clients_adapters(built: Workspace) -> None:
    adapters = built.folder / "mlartifacts" / run_of(built, "fedselectkd-1") / "artifacts" / "adapters"
    assert sorted(path.stem for path in adapters.iterdir()) == ["Academic", "Committee", "Product"]


def test_a_second_projection_doubles_nothing(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    before = names(copy)
    copy.call("track")
    assert "track: 0 runs brought" in capsys.readouterr().err
    assert names(copy) == before


def test_a_deleted_store_comes_back(copy: Workspace) -> None:
    before = names(copy)
    (copy.folder / "mlflow.db").unlink()
    copy.call("track")
    assert names(copy) == before


def test_a_clone_that_has_only_the_metrics_of_a_run_is_no_error(
    copy: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Git has metrics of all runs, and a clone may make but some of them."""
    (copy.folder / "data/encoded/main/zeroshot-1.json").unlink()
    copy.call("track")
    assert "track: 0 runs brought" in capsys.readouterr().err


def test_results_of_a_former_plan_are_not_put_under_the_new_one(
    copy: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the three runs with the new τ nothing is made yet; all others are there already."""
    copy.params(tau=4.0)
    copy.stage("plan")
    copy.call("track")
    assert "track: 0 runs brought" in capsys.readouterr().err


def told(workspace: Workspace, *lines: str) -> None:
    """What a training of the new plan says to its logger."""
    with planned_anew(workspace).entered():
        rounds = [Round(1, n, "Academic", train_loss=3.0 - n, validation_loss=3.0 - n) for n in (1, 2)]
        tracking.log("main/fedavg-1", [*(json.dumps([asdict(one)]) for one in rounds), *lines])


def test_a_training_that_waits_for_its_lock_is_not_said_to_run(copy: Workspace) -> None:
    """Else another training's clean-up, which finds the lock free, would call it failed."""

    def lines() -> Iterator[str]:
        assert statuses(copy, "fedavg-1") == ["FINISHED"]
        yield "[]"
        assert statuses(copy, "fedavg-1") == ["FINISHED", "RUNNING"]

    with planned_anew(copy).entered():
        tracking.log("main/fedavg-1", lines())
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]


def test_the_untrained_backbone_is_not_followed(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens round by round, so no process is started for it; the projection brings its scores."""
    monkeypatch.setattr(tracking.subprocess, "Popen", None)
    with built.entered(), tracking.live("main/zeroshot-1") as on_round:
        on_round([])


def test_a_training_that_says_that_it_has_finished_is_finished(copy: Workspace) -> None:
    """Two trainings of that name: the first plan's, and the new one, whose adapters are still to be scored."""
    told(copy, json.dumps(tracking.FINISHED))
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FINISHED"]


def test_rounds_are_logged_as_they_are_told(copy: Workspace) -> None:
    told(copy)
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"], "it ended without a word"
    logged = "select step, value from metrics join runs using (run_uuid) where status = 'FAILED' and key = ?"
    assert sorted(rows(copy, logged, "Academic/train_loss")) == [(1, 2.0), (2, 1.0)]


def test_a_training_that_fails_is_told_as_failed(copy: Workspace) -> None:
    copy.params(learning_rate=1e30, batch_size=1)
    copy.stage("plan")
    with pytest.raises(QuorumError, match="the loss is"):
        copy.call("train", "main/fedavg-1")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]


def begun(workspace: Workspace, after_a_round: str) -> subprocess.Popen[bytes]:
    """A training of the new plan in a session of its own, which does something after its first round."""
    return subprocess.Popen(
        [sys.executable, "-c", TRAINING.format(after_a_round=after_a_round)],
        cwd=planned_anew(workspace).folder,
        env=workspace.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def test_a_training_that_is_killed_is_told_as_failed_by_its_logger(copy: Workspace) -> None:
    """It lives on until its pipe ends, and with it the output that is waited for here."""
    process = begun(copy, "os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]
    of_it = "select distinct step from metrics join runs using (run_uuid) where status = 'FAILED'"
    assert rows(copy, of_it) == [(1,)], "the round that it told before it was killed"


def test_a_training_killed_with_its_logger_is_failed_after_the_next_projection(copy: Workspace) -> None:
    """As by a machine that goes down. As long as it holds its lock, it is taken for what it says: running."""
    process = begun(copy, "time.sleep(600)")
    deadline = time.monotonic() + 120
    logged = "select step from metrics join runs using (run_uuid) where status = 'RUNNING'"
    while not rows(copy, logged) and time.monotonic() < deadline:
        time.sleep(0.1)
    copy.call("track")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "RUNNING"]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    copy.call("track")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]


def test_a_logger_that_is_gone_stops_no_training(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a run that is complete in MLflow, or of a store that cannot be opened, is before the last round."""
    monkeypatch.setattr(tracking.sys, "executable", "/bin/true")
    with built.entered(), tracking.live("main/fedavg-1") as on_round:
        time.sleep(0.5)
        on_round([])
        on_round([])


def test_a_store_that_is_out_of_order_stops_no_training(copy: Workspace) -> None:
    (copy.folder / "mlflow.db").write_bytes(b"no database" * 100)
    planned_anew(copy).call("train", "main/fedavg-1")
    assert len(history(copy)) == 3 * 3


def history(workspace: Workspace) -> list[str]:
    """Rows, the columns' names aside."""
    return (workspace.folder / "models/main/fedavg-1/history.csv").read_text(encoding="utf-8").splitlines()[1:]


def test_a_training_removes_its_own_checkpoint_and_no_others(copy: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a training that is under way elsewhere, or of another plan, is still wanted."""
    monkeypatch.setattr(tracking, "live", lambda run: nullcontext(lambda rows: None))

    def kept() -> set[Path]:
        return {path for path in (copy.folder / "work/checkpoints").iterdir() if path.is_dir()}

    others = kept()
    assert len(others) == 9, "one a training of the first plan"
    planned_anew(copy).call("train", "main/fedavg-1")
    assert len(kept() - others) == 1, "fedavg-local, which is the same training, is still to be written"
    copy.call("train", "main/fedavg-local-1")
    copy.call("train", "more/fedavg-base-1")
    assert kept() == others
