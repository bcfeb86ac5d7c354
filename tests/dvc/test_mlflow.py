"""Runs in MLflow's store: a projection of files, and the status of each training."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

import pytest
from conftest import Workspace
from labelled import EVERY

from pipeline.errors import QuorumError
from pipeline.federated.history import Round
from pipeline.runs import tracking
from pipeline.workspace.tables import read_table

NEW = {"learning_rate": 0.005, "rounds": 3}
UNMADE = ("deep", "news-full")
"""Knobs of a plan whose trainings have not been made."""
TRAINING = """
import os, signal, time
from contextlib import contextmanager
from pipeline.runs.tracking import live
from pipeline.stages import train

with live("{run}") as log:
    @contextmanager
    def log_and_act(run_id):
        with log(run_id) as on_round:
            def act(rows):
                on_round(rows)
                if rows:
                    {after_a_round}
            yield act
    train.run("{run}", log_and_act)
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


def seeds_of(run: str) -> list[int]:
    """A run's seeds: its own, its data set's, or the file's."""
    data = EVERY["settings"][EVERY["runs"][run]["setting"]]["data"]
    own = EVERY["data"][data if isinstance(data, str) else data[0]].get("seeds")
    return EVERY["runs"][run].get("seeds") or own or EVERY["seeds"]


def with_a_new_plan(workspace: Workspace) -> Workspace:
    """With a plan of other trainings."""
    workspace.params(**NEW)
    workspace.stage("plan")
    return workspace


def test_every_run_of_every_task_is_there_once_and_finished(built: Workspace) -> None:
    """A run at each of its seeds, the page, and the run above them all."""
    made = [f"{run}-{seed}" for run in EVERY["runs"] if run not in UNMADE for seed in seeds_of(run)]
    found = names(built)
    assert [name for name in found if name in made] == sorted(made)
    assert len(found) == len(made) + 2
    assert {status for (status,) in rows(built, "select status from runs")} == {"FINISHED"}


def test_a_run_has_its_knobs_by_their_names_in_params_yaml(built: Workspace) -> None:
    known = dict(rows(built, "select key, value from params where run_uuid = ?", run_of(built, "fedselectkd-1")))
    wanted = {
        "tau": "5.0",
        "lambda": "0.2",
        "method": "AdaFedSelectKD",
        "seed": "1",
        "backbone": "tiny-llama",
    }
    assert {knob: known[knob] for knob in wanted} == wanted


@pytest.mark.parametrize(
    ("run", "client", "score"),
    [
        ("fedselectkd-1", "Academic", "test/average"),
        ("news-fedavg-2", "server", "test/accuracy"),
        ("names-ditto-1", "email", "test/f1"),
        ("answers-fedprox-1", "server", "test/exact"),
        ("subjects-fedopt-1", "server", "test/rougeL"),
    ],
)
def test_a_run_has_metrics_a_round_and_scores_at_the_end(built: Workspace, run: str, client: str, score: str) -> None:
    found = set(rows(built, "select key, step from metrics where run_uuid = ?", run_of(built, run)))
    assert {(f"{client}/validation_loss", n) for n in (1, 2)} | {(score, 0)} <= found


@pytest.mark.parametrize("changes", [{}, {"tau": 4.0}])
def test_another_projection_doubles_nothing_and_puts_nothing_under_a_new_plan(
    copy: Workspace, capsys: pytest.CaptureFixture[str], changes: dict[str, float]
) -> None:
    """Nothing is made yet of the runs with the new τ; all others are there already."""
    before = names(copy)
    copy.params(**changes)
    copy.stage("plan")
    copy.call("track")
    assert "track: 0 runs brought" in capsys.readouterr().err
    assert names(copy) == before


def test_a_deleted_store_comes_back(copy: Workspace) -> None:
    """From committed files: metrics by round and final scores need no models, partitions or indices."""
    every = "select name, key, step, value from runs join metrics using (run_uuid) where key not like '%seconds'"
    before, logged = names(copy), sorted(rows(copy, every))
    (copy.folder / "mlflow.db").unlink()
    for folder in ("data/encoded", "data/partitions", "models"):
        shutil.rmtree(copy.folder / folder)
    copy.call("track")
    assert names(copy) == before
    assert sorted(rows(copy, every)) == logged


def message(run_id: str, number: int | None = None) -> str:
    """What a training writes to its logger: that it begins, or a finished round."""
    rounds = [] if number is None else [Round(1, number, "A", train_loss=3.0 - number, validation_loss=1.0)]
    return json.dumps([run_id, [asdict(one) for one in rounds]])


@pytest.mark.parametrize("run", ["fedavg", "news-fedavg"])
def test_a_training_that_waits_for_its_lock_is_not_logged(copy: Workspace, run: str) -> None:
    """Another training's clean-up, which finds the lock free, would set it to FAILED."""

    def lines() -> Iterator[str]:
        assert statuses(copy, f"{run}-1") == ["FINISHED"]
        yield message(f"{run}/1")
        assert statuses(copy, f"{run}-1") == ["FINISHED", "RUNNING"]

    copy.params(weight_decay=0.02)
    copy.stage("plan")
    with copy.entered():
        tracking.log(lines())
    assert statuses(copy, f"{run}-1") == ["FINISHED", "FAILED"], "it ended without a message"


def test_the_untrained_model_has_no_logger(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens round by round, so no process is started for it; the projection logs its scores."""
    monkeypatch.setattr(tracking.subprocess, "Popen", None)
    with built.entered(), tracking.live("zeroshot"):
        pass


def test_one_logger_follows_every_seed(copy: Workspace) -> None:
    """The first plan's two trainings, and two new ones, of which the second has not ended."""
    copy.params(weight_decay=0.02)
    copy.stage("plan")
    with copy.entered():
        tracking.log([message("news-fedavg/1", 1), '["news-fedavg/1", null]', message("news-fedavg/2", 1)])
    assert statuses(copy, "news-fedavg-1") == ["FINISHED", "FINISHED"]
    assert statuses(copy, "news-fedavg-2") == ["FINISHED", "FAILED"]


def test_rounds_are_logged_as_they_finish(copy: Workspace) -> None:
    with with_a_new_plan(copy).entered():
        tracking.log([message("fedavg/1", 1), message("fedavg/1", 2)])
    logged = "select step, value from metrics join runs using (run_uuid) where status = 'FAILED' and key = ?"
    assert sorted(rows(copy, logged, "A/train_loss")) == [(1, 2.0), (2, 1.0)]


def test_a_training_that_fails_is_failed(copy: Workspace) -> None:
    copy.params(learning_rate=1e30, batch_size=1)
    copy.stage("plan")
    with pytest.raises(QuorumError, match="the loss is"):
        copy.call("train", "fedavg")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]


def begun(workspace: Workspace, run: str, after_a_round: str) -> subprocess.Popen[bytes]:
    """A training of the new plan in a new session, which acts after its first round."""
    return subprocess.Popen(
        [sys.executable, "-c", TRAINING.format(run=run, after_a_round=after_a_round)],
        cwd=with_a_new_plan(workspace).folder,
        env=workspace.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


@pytest.mark.parametrize("run", ["fedavg", "news-fedavg"])
def test_a_training_that_is_killed_is_failed_by_its_logger(copy: Workspace, run: str) -> None:
    """It lives until its pipe ends, and with it the output that this test waits for."""
    if run == "news-fedavg":  # whose data set has its own rates
        copy.params(weight_decay=0.02)
    process = begun(copy, run, "os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert statuses(copy, f"{run}-1") == ["FINISHED", "FAILED"]
    of_it = "select distinct step from metrics join runs using (run_uuid) where status = 'FAILED'"
    assert rows(copy, of_it) == [(1,)], "the round before it was killed"


def test_a_training_killed_with_its_logger_is_failed_after_the_next_projection(copy: Workspace) -> None:
    """As by a machine that goes down. As long as it has its lock, it is running."""
    process = begun(copy, "fedavg", "time.sleep(600)")
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
    with built.entered(), tracking.live("fedavg") as log, log("fedavg/1") as on_round:
        on_round([])
        time.sleep(0.5)
        on_round([])


def test_a_damaged_store_stops_no_training(copy: Workspace) -> None:
    """Three rounds of three clients."""
    (copy.folder / "mlflow.db").write_bytes(b"no database" * 100)
    with_a_new_plan(copy).call("train", "fedavg")
    assert len(read_table(copy.folder / "models/fedavg/1/history.csv")) == 3 * 3
