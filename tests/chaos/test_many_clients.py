"""A thousand simulated clients for 300 rounds, a fifth of them missing: memory stays flat, nothing is left behind.

A head of 20 classes trains on made-up vectors of 64 numbers; 20 clients a round. Every rule for aggregation is tried.
"""

from pathlib import Path

import psutil
import pytest
import torch
from federations import build

from benchmarks.federations import LABELS, made_up
from pipeline.engines.faulty import Faulty
from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Callback, Checkpointing, Stopping
from pipeline.federated.faults import Faults
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Private, Progress
from pipeline.federated.tolerance import Tolerance
from pipeline.tasks.heads import initial_linears

TEXTS, WIDTH, DRAWN, ROUNDS, SETTLED = 10_000, 64, 20, 300, 60
FLAT = 1.05
FAULTS = Faults(dropout=0.2, lost=0.02, truncated=0.02, duplicated=0.05, poisoned={"client-00007": "nan"})
RULES = Tolerance(minimum=9, deadline=600.0, repeats=2, without_quorum="skip")
ALGORITHMS = [
    build("AdaFedAvg"),
    build("Median"),
    build("TrimmedMean", faulty=2),
    build("NormClipping", max_norm=1.0),
    build("Krum", faulty=2, chosen=5),
    build("FedBuff", buffer=10),
]


class Memory(Callback):
    """The process's own memory after some rounds, in bytes."""

    def __init__(self) -> None:
        self.after: dict[int, int] = {}

    def after_round(self, progress: Progress) -> None:
        if progress.round in (SETTLED, ROUNDS):
            self.after[progress.round] = psutil.Process().memory_info().rss


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: type(algorithm).__name__)
def test_a_thousand_clients_for_three_hundred_rounds(tmp_path: Path, algorithm: Algorithm) -> None:
    process, memory, generator = psutil.Process(), Memory(), torch.Generator().manual_seed(1)
    before = process.num_fds()
    vectors = torch.randn(TEXTS, WIDTH, generator=generator)
    clients, server = made_up(vectors, torch.randint(LABELS, (TEXTS, 1), generator=generator))
    private = Private.begin(Blobs(tmp_path / "one"), {})
    inner = InProcess(algorithm, clients, {"server": server}, private, seed=1, job="key")
    engine = Faulty(inner, FAULTS, RULES.deadline, seed=1, sends=algorithm.sends)
    callbacks = [Stopping(ROUNDS, 10**6), Checkpointing("key", private), memory]
    begun = initial_progress(algorithm, initial_linears({"head": (WIDTH, LABELS)}, 1), engine)
    who = Participation(clients_per_round=DRAWN)
    progress = run_rounds(algorithm, engine, begun, who, callbacks, seed=1, rules=RULES, job="key")
    assert progress.round == ROUNDS
    assert {"missing", "refused"} <= {event.kind for event in progress.events}
    growth = memory.after[ROUNDS] / memory.after[SETTLED]
    print(f"{len(progress.events)} events, {growth:.3f} of round {SETTLED}'s memory")
    assert growth <= FLAT
    assert process.num_fds() <= before + 1  # the checkpoint's, until it is collected
    assert process.children() == []
    assert torch.isfinite(progress.server.adapter["head.weight"]).all()
