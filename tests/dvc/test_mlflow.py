"""Runs in MLflow's store: a projection of files, and the status of each training, also of one that is killed."""

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import Workspace
from labelled import EVERY
from mlflow import MlflowClient
from workspaces import SMALL, files_of

from pipeline.errors import QuorumError
from pipeline.federated.blobs import Blobs
from pipeline.federated.history import Round
from pipeline.plan.orders import planned_runs
from pipeline.runs import tracking
from pipeline.workspace.tables import read_table


def names(workspace: Workspace) -> list[str]:
    return sorted(name for (name,) in workspace.logged("select name from runs where lifecycle_stage = 'active'"))


def statuses(workspace: Workspace, run: str) -> list[str]:
    """Of all that MLflow has under a run's name, the oldest first."""
    return [s for (s,) in workspace.logged("select status from runs where name = ? order by start_time", run)]


def test_every_run_of_every_task_is_there_once_and_finished(built: Workspace) -> None:
    """A run at each of its seeds, the page, and the run above them all."""
    with built.entered():
        made = [f"{row.name}-{row.seed}" for row in planned_runs() if not row.left_out]
    found = names(built)
    assert [name for name in found if name in made] == sorted(made)
    assert len(found) == len(made) + 2
    assert {status for (status,) in built.logged("select status from runs")} == {"FINISHED"}


def test_a_run_has_its_knobs_by_their_names_in_params_yaml(built: Workspace) -> None:
    knobs = "select key, value from params join runs using (run_uuid) where name = 'fedselectkd-1'"
    wanted = {"tau": "5.0", "lambda": "0.2", "method": "AdaFedSelectKD", "seed": "1", "backbone": "tiny-llama"}
    assert wanted.items() <= dict(built.logged(knobs)).items()


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
    found = set(built.logged("select key, step from metrics join runs using (run_uuid) where name = ?", run))
    assert {(f"{client}/validation_loss", n) for n in (1, 2)} | {(score, 0)} <= found


def test_another_projection_doubles_nothing(copy: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made yet of the runs with the new τ; all others are there already."""
    before = names(copy)
    for tau in (5.0, 4.0):
        copy.params(tau=tau)
        copy.stage("plan")
        copy.call("track")
        assert "track: 0 runs brought" in capsys.readouterr().err
        assert names(copy) == before


def test_a_deleted_store_comes_back(copy: Workspace) -> None:
    """From committed files: metrics by round and final scores need no models, partitions or indices."""
    every = "select name, key, step, value from runs join metrics using (run_uuid) where key not like '%seconds'"
    before, logged = names(copy), sorted(copy.logged(every))
    (copy.folder / "mlflow.db").unlink()
    for folder in ("data/encoded", "data/partitions", "models"):
        shutil.rmtree(copy.folder / folder)
    copy.call("track")
    assert names(copy) == before
    assert sorted(copy.logged(every)) == logged


@pytest.mark.parametrize("what", ["experiment", "run"])
def test_what_was_deleted_in_mlflow_is_restored_by_the_next_projection(copy: Workspace, what: str) -> None:
    """It is not made again: restored by hand later, it would be there twice."""
    before, made = names(copy), copy.logged("select count(*) from runs")
    ((experiment, run),) = copy.logged("select experiment_id, run_uuid from runs where name = 'fedavg-1'")
    client = MlflowClient(f"sqlite:///{copy.folder}/mlflow.db")
    client.delete_run(run) if what == "run" else client.delete_experiment(str(experiment))
    assert names(copy) != before
    copy.call("track")
    assert names(copy) == before
    assert copy.logged("select count(*) from runs") == made


def message(seed: int, number: int | None) -> str:
    """What a training of news-fedavg writes to its logger: that it begins, or a finished round."""
    rounds = [] if number is None else [asdict(Round(1, number, "A", train_loss=3.0 - number, validation_loss=1.0))]
    return json.dumps([f"news-fedavg/{seed}", rounds])


def test_a_logger_follows_every_seed_from_its_lock_to_its_end(copy: Workspace) -> None:
    """A training that waits for its lock is not logged: another one's clean-up, which finds it free, would fail it."""

    def lines() -> Iterator[str]:
        assert statuses(copy, "news-fedavg-1") == ["FINISHED"]
        yield message(1, None)
        assert statuses(copy, "news-fedavg-1") == ["FINISHED", "RUNNING"]
        yield '["news-fedavg/1", null]'
        yield message(2, 1)
        yield message(2, 2)

    copy.params(weight_decay=0.02)
    copy.stage("plan")
    with copy.entered():
        tracking.log(lines())
    assert statuses(copy, "news-fedavg-1") == ["FINISHED", "FINISHED"]
    assert statuses(copy, "news-fedavg-2") == ["FINISHED", "FAILED"], "it ended without a message"
    logged = "select step, value from metrics join runs using (run_uuid) where status = 'FAILED' and key = ?"
    assert sorted(copy.logged(logged, "A/train_loss")) == [(1, 2.0), (2, 1.0)]


def test_the_untrained_model_has_no_logger(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens round by round, so no process is started for it; the projection logs its scores."""
    monkeypatch.setattr(tracking.subprocess, "Popen", None)
    with built.entered(), tracking.live("zeroshot"):
        pass


def test_a_training_that_fails_is_failed_and_leaves_no_model(copy: Workspace) -> None:
    copy.params(rates=EVERY["rates"] | {"server": 1e30})
    copy.stage("plan")
    with pytest.raises(QuorumError, match="; lower learning_rate, run again"):
        copy.call("train", "fedavg")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]
    assert not (copy.folder / "models/fedavg/1").exists()


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
    copy.params(rounds=3)
    copy.stage("plan")
    copy.call("train", "fedavg")
    assert len(read_table(copy.folder / "models/fedavg/1/history.csv")) == 3 * 3


def started(workspace: Workspace, run: str) -> subprocess.Popen[bytes]:
    """The training of a run, in a process of its own."""
    command, quiet = [sys.executable, "-m", "pipeline", "train", run], subprocess.DEVNULL
    return subprocess.Popen(command, cwd=workspace.folder, env=workspace.env, stdout=quiet, stderr=quiet)


def awaited(find: Callable[[], Any]) -> Any:
    """What is found, as soon as there is something."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(QuorumError, sqlite3.OperationalError):  # it is being written
            if found := find():
                return found
        time.sleep(0.02)
    return pytest.fail("nothing within 120 s")


def rounds_of(checkpoints: Path) -> int:
    """How many are finished."""
    states = [json.loads(Blobs(folder).state() or "{}") for folder in checkpoints.glob("*/")]
    return max((state.get("progress", {}).get("round", 0) for state in states), default=0)


def test_a_killed_training_resumes_bit_for_bit(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """The real stage, killed with -9 after its first finished round, against one that was left alone."""
    run = "fedselectkd"
    workspace.params(rounds=4, train_fraction=1.0, runs={run: SMALL["runs"][run]}, sections={"main": [run]})
    workspace.make_until("encode")
    checkpoints, models = workspace.folder / "work/checkpoints", workspace.folder / "models" / run
    process = started(workspace, run)
    awaited(lambda: rounds_of(checkpoints))
    process.kill()
    assert process.wait() == -9
    assert 1 <= rounds_of(checkpoints) < 4
    # Its logger outlives it, and logs how it ended.
    failed = "select value from params join runs using (run_uuid) where key = 'tau' and status = 'FAILED'"
    assert awaited(lambda: workspace.logged(failed)) == [("5.0",)]
    ((last,),) = workspace.logged("select max(step) from metrics")
    assert 1 <= last < 4, "the rounds before it was killed"
    capsys.readouterr()
    workspace.stage("train", run)
    assert "resuming after round" in capsys.readouterr().err
    resumed = files_of(models)
    assert {"1/adapters/Academic.safetensors", "1/history.csv"} <= set(resumed)
    assert not list(checkpoints.glob("*/")), "no run waits for it"
    shutil.rmtree(models)
    workspace.stage("train", run)
    assert "resuming" not in capsys.readouterr().err
    assert files_of(models) == resumed


def test_a_training_killed_with_its_logger_is_failed_after_the_next_projection(copy: Workspace) -> None:
    """As by a machine that goes down. As long as it has its lock, it is running."""
    copy.params(rounds=10_000, patience=10_000, learning_rate=0.0001)
    copy.stage("plan")
    process = started(copy, "fedavg")
    awaited(lambda: copy.logged("select step from metrics join runs using (run_uuid) where status = 'RUNNING'"))
    copy.call("track")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "RUNNING"]
    for one in (*psutil.Process(process.pid).children(recursive=True), process):
        one.kill()
    process.wait()
    copy.call("track")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]
