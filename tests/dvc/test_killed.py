"""A training that is killed goes on where it was."""

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import Workspace
from workspaces import SMALL, files_of

from pipeline.errors import QuorumError
from pipeline.federated.blobs import Blobs

RUN = "fedselectkd"


def test_a_killed_training_resumes_bit_for_bit(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """The real stage, killed with -9 after its first finished round, against one that was left alone."""
    workspace.params(rounds=4, train_fraction=1.0, runs={RUN: SMALL["runs"][RUN]}, sections={"main": [RUN]})
    workspace.make_until("encode")
    checkpoints, models = workspace.folder / "work/checkpoints", workspace.folder / "models" / RUN
    command, quiet = [sys.executable, "-m", "pipeline", "train", RUN], subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=workspace.folder, env=workspace.env, stdout=quiet, stderr=quiet)
    deadline = time.monotonic() + 120
    while not _rounds(checkpoints) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -9
    assert 1 <= _rounds(checkpoints) < 4
    tau, status, last = _logged(workspace)
    assert (tau, status) == ("5.0", "FAILED")
    assert 1 <= last < 4, "the rounds before it was killed"
    capsys.readouterr()
    workspace.stage("train", RUN)
    assert "resuming after round" in capsys.readouterr().err
    resumed = files_of(models)
    assert {"1/adapters/Academic.safetensors", "1/history.csv"} <= set(resumed)
    assert not list(checkpoints.glob("*/")), "no run waits for it"
    shutil.rmtree(models)
    workspace.stage("train", RUN)
    assert "resuming" not in capsys.readouterr().err
    assert files_of(models) == resumed


def _rounds(checkpoints: Path) -> int:
    """How many are finished."""
    for folder in checkpoints.glob("*/"):
        with suppress(QuorumError):  # it is being written
            return int(json.loads(Blobs(folder).state() or "{}").get("progress", {}).get("round", 0))
    return 0


def _logged(workspace: Workspace) -> tuple[str, str, int]:
    """τ, status and last round of the training, once its logger, which outlives it, has logged how it ended."""
    query = "select value, status from params join runs using (run_uuid) where key = 'tau' and status = 'FAILED'"
    deadline = time.monotonic() + 60
    while True:
        time.sleep(0.1)
        with suppress(sqlite3.OperationalError):  # not made yet
            if found := workspace.logged(query):
                return *found[0], workspace.logged("select max(step) from metrics")[0][0]
        assert time.monotonic() < deadline
