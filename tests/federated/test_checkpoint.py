"""Checkpoints: a killed training goes on with the same bits; a damaged or foreign one is one line."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import make_backbone
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import fedavg, fedopt, fedselectkd, scaffold
from pipeline.federated.bits import pack_bits, unpack_bits
from pipeline.federated.checkpoint import load_progress, save_progress
from pipeline.federated.loop import Progress, Schedule, run_rounds, start
from pipeline.model.adapter import digest, init_adapter

ALGORITHM = fedselectkd.build(fedselectkd.Hyperparameters(tau=4.92, weight=0.2))
BACKBONE = make_backbone("llama")
INITIAL = init_adapter(BACKBONE.adapted_layers, BACKBONE.width, 8, seed=3)


def fingerprint(progress: Progress) -> str:
    """Everything but seconds."""
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in progress.history]
    states = {name: (digest(s.adapter), digest(s.memory)) for name, s in progress.clients.items()}
    best = {
        kind: {n: (b.round, b.loss, digest(b.adapter), digest(b.teacher)) for n, b in kept.items()}
        for kind, kept in progress.best.items()
    }
    bits = {name: [row.tolist() for row in rows] for name, rows in progress.distilled.items()}
    server = (digest(progress.server.adapter), digest(progress.server.memory))
    return json.dumps([server, states, best, history, bits, progress.stale])


KEPT = fedavg.Hyperparameters(client_optimizer_state="keep")
OPTIMIZED = fedopt.Hyperparameters(server_learning_rate=0.01)


@pytest.mark.parametrize(
    ("algorithm", "schedule"),
    [
        (ALGORITHM, {}),
        (scaffold.build(scaffold.Hyperparameters()), {"clients_per_round": 1}),
        (fedopt.build(OPTIMIZED), {"joins": {"B": 2}}),
        (fedavg.build(KEPT), {}),
    ],
    ids=["selective", "variates and a draw", "server moments and a late client", "client moments"],
)
def test_a_resumed_training_equals_an_uninterrupted_one(  # type: ignore[no-untyped-def]
    tmp_path: Path, make_client, algorithm: Algorithm, schedule: dict[str, Any]
) -> None:
    clients = {"A": make_client(BACKBONE, 0, 4), "B": make_client(BACKBONE, 9, 5)}

    def run(progress: Progress, rounds: int) -> Progress:
        return run_rounds(
            algorithm,
            clients,
            clients,
            progress,
            Schedule(rounds, patience=9, **schedule),
            seed=1,
            on_round=lambda p: save_progress(tmp_path, "key", p),
        )

    whole = run(start(algorithm, clients, INITIAL), 3)
    run(start(algorithm, clients, INITIAL), 1)
    resumed = load_progress(tmp_path, "key")
    assert resumed is not None
    assert resumed.round == 1
    assert fingerprint(run(resumed, 3)) == fingerprint(whole)


@pytest.fixture
def saved(tmp_path: Path, make_client) -> Path:  # type: ignore[no-untyped-def]
    clients = {"A": make_client(BACKBONE, 0, 3)}
    run_rounds(
        ALGORITHM,
        clients,
        clients,
        start(ALGORITHM, clients, INITIAL),
        Schedule(rounds=2, patience=9),
        seed=1,
        on_round=lambda p: save_progress(tmp_path, "key", p),
    )
    return tmp_path


def test_only_what_the_last_round_needs_is_kept(saved: Path) -> None:
    text = (saved / "state.json").read_text()
    assert all(blob.stem in text for blob in saved.glob("*.safetensors"))


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert load_progress(tmp_path, "key") is None


def test_a_checkpoint_of_another_spec_is_one_line(saved: Path) -> None:
    with pytest.raises(QuorumError, match="checkpoint of another spec; delete"):
        load_progress(saved, "other")


@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_a_damaged_blob_is_one_line(saved: Path, damage: str) -> None:
    blob = next(saved.glob("*.safetensors"))
    if damage == "remove":
        blob.unlink()
    else:
        blob.write_bytes(blob.read_bytes()[:-1])
    with pytest.raises(QuorumError, match="missing or damaged checkpoint"):
        load_progress(saved, "key")


def test_a_half_written_state_is_one_line(saved: Path) -> None:
    (saved / "state.json").write_text("{", encoding="utf-8")
    with pytest.raises(QuorumError, match="malformed JSON"):
        load_progress(saved, "key")


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 4), length=st.integers(1, 40), seed=st.integers(0, 99))
def test_bits_come_back(rows: int, length: int, seed: int) -> None:
    mask = torch.rand(rows, length, generator=torch.Generator().manual_seed(seed)) < 0.5
    packed = pack_bits([mask[i : i + 1] for i in range(rows)])
    assert packed.shape == (rows, (length + 7) // 8)
    assert torch.equal(unpack_bits(packed, length), mask)


def test_bits_by_hand() -> None:
    """1000 0000 1 -> 128 and 128 (the ninth bit opens a new byte)."""
    mask = torch.tensor([[True, *([False] * 7), True]])
    assert pack_bits([mask]).tolist() == [[128, 128]]


def test_a_training_killed_by_sigkill_resumes_bit_for_bit(workspace) -> None:  # type: ignore[no-untyped-def]
    """The real stage, killed with -9 after its first finished round, against one that was left alone."""
    workspace.params(rounds=4, train_fraction=1.0, runs={"fedselectkd": {"method": "AdaFedSelectKD"}})
    workspace.repro("encode")
    checkpoints = workspace.folder / "work" / "checkpoints"
    command = [sys.executable, "-m", "pipeline", "train", "main/fedselectkd-1"]
    process = subprocess.Popen(
        command, cwd=workspace.folder, env=workspace.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not list(checkpoints.glob("*/state.json")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -9
    state = json.loads(next(checkpoints.glob("*/state.json")).read_text())
    assert 1 <= state["round"] < 4
    with closing(sqlite3.connect(workspace.folder / "mlflow.db")) as store:
        assert ("tau", "5.0") in list(store.execute("select key, value from params")), "MLflow shows what is running"
    assert "resuming after round" in workspace.run(*command).stderr
    resumed = _outputs(workspace.folder / "models" / "main" / "fedselectkd-1")
    assert {"adapters/Academic.safetensors", "history.csv"} <= set(resumed)
    for path in checkpoints.glob("*/*"):
        path.unlink()
    assert "resuming" not in workspace.run(*command).stderr
    assert _outputs(workspace.folder / "models" / "main" / "fedselectkd-1") == resumed


def _outputs(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
