"""Runs in MLflow's store: a projection of files, and the status of each training."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from conftest import Workspace
from labelled import EVERY
from mlflow import MlflowClient

from pipeline.errors import QuorumError
from pipeline.federated.history import Round
from pipeline.runs import tracking
from pipeline.workspace.tables import read_table

UNMADE = ("deep", "news-full")


def names(workspace: Workspace) -> list[str]:
    return sorted(name for (name,) in workspace.logged("select name from runs where lifecycle_stage = 'active'"))


def statuses(workspace: Workspace, run: str) -> list[str]:
    """Of all that MLflow has under a run's name, the oldest first."""
    return [s for (s,) in workspace.logged("select status from runs where name = ? order by start_time", run)]


def seeds_of(run: str) -> list[int]:
    """A run's seeds: its own, its data set's, or the file's."""
    data = EVERY["settings"][EVERY["runs"][run]["setting"]]["data"]
    own = EVERY["data"][data if isinstance(data, str) else data[0]].get("seeds")
    return EVERY["runs"][run].get("seeds") or own or EVERY["seeds"]


def test_every_run_of_every_task_is_there_once_and_finished(built: Workspace) -> None:
    """A run at each of its seeds, the page, and the run above them all."""
    made = [f"{run}-{seed}" for run in EVERY["runs"] if run not in UNMADE for seed in seeds_of(run)]
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


def test_another_projection_doubles_nothing_and_puts_nothing_under_a_new_plan(
    copy: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_training_that_fails_is_failed(copy: Workspace) -> None:
    copy.params(learning_rate=1e30, batch_size=1)
    copy.stage("plan")
    with pytest.raises(QuorumError, match="the loss is"):
        copy.call("train", "fedavg")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "FAILED"]


def test_a_training_killed_with_its_logger_is_failed_after_the_next_projection(copy: Workspace) -> None:
    """As by a machine that goes down. As long as it has its lock, it is running. See test_killed for one alone."""
    copy.params(rounds=10_000, patience=10_000, learning_rate=0.0001)
    copy.stage("plan")
    command, quiet = [sys.executable, "-m", "pipeline", "train", "fedavg"], subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=copy.folder, env=copy.env, stdout=quiet, stderr=quiet, start_new_session=True
    )
    deadline = time.monotonic() + 120
    logged = "select step from metrics join runs using (run_uuid) where status = 'RUNNING'"
    while not copy.logged(logged) and time.monotonic() < deadline:
        time.sleep(0.1)
    copy.call("track")
    assert statuses(copy, "fedavg-1") == ["FINISHED", "RUNNING"]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
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
    copy.params(rounds=3)
    copy.stage("plan")
    copy.call("train", "fedavg")
    assert len(read_table(copy.folder / "models/fedavg/1/history.csv")) == 3 * 3
