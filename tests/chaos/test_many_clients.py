"""A thousand simulated clients for 300 rounds, a fifth of them missing: memory stays flat, nothing is left behind.

A head of 20 classes trains on made-up vectors of 64 numbers; 20 clients a round. Every rule for aggregation is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from pipeline.engines.faulty import Faulty
from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import fedavg, fedbuff, krum, median, normclipping, trimmedmean
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Callback, Checkpointing, Stopping
from pipeline.federated.faults import Faults
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.state import Private, Progress
from pipeline.federated.tolerance import Tolerance
from pipeline.model.backbone import Prefix
from pipeline.model.entry import Entry
from pipeline.tasks.heads import applied, initial_linears

CLIENTS, DRAWN, ROUNDS, SETTLED = 1_000, 20, 300, 60
WIDTH, LABELS, TEXTS = 64, 20, 4
FLAT = 1.05
FAULTS = Faults(dropout=0.2, lost=0.02, truncated=0.02, duplicated=0.05, poisoned={"client-0007": "nan"})
RULES = Tolerance(minimum=9, deadline=600.0, repeats=2, without_quorum="skip")

ALGORITHMS: dict[str, Algorithm] = {
    "mean": fedavg.build(fedavg.Hyperparameters()),
    "median": median.build(median.Hyperparameters()),
    "trimmed mean": trimmedmean.build(trimmedmean.Hyperparameters(faulty=2)),
    "norm clipping": normclipping.build(normclipping.Hyperparameters(max_norm=1.0)),
    "multi-krum": krum.build(krum.Hyperparameters(faulty=2, chosen=5)),
    "buffer": fedbuff.build(fedbuff.Hyperparameters(buffer=10)),
}


class Vectors:
    """Stored vectors under a linear head; see `head.BackboneWithHead`."""

    device = torch.device("cpu")

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return applied(adapter, "head", torch.stack([prefix["hidden"] for prefix in prefixes]))

    def head(self, hidden: torch.Tensor, targets: torch.Tensor | None = None, /) -> torch.Tensor:
        del targets
        return hidden

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        return [""] * len(tokens)


class Memory(Callback):
    """The process's own memory after some rounds, in bytes."""

    def __init__(self) -> None:
        self.after: dict[int, int] = {}

    def after_round(self, progress: Progress) -> None:
        if progress.round in (SETTLED, ROUNDS):
            self.after[progress.round] = psutil.Process().memory_info().rss


def run(algorithm: Algorithm, folder: Path, memory: Memory) -> Progress:
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(CLIENTS * TEXTS, WIDTH, generator=generator)
    targets = torch.randint(LABELS, (CLIENTS * TEXTS, 1), generator=generator)

    def load(keys: Any) -> list[Prefix]:
        return [{"hidden": vectors[int(key)], "targets": targets[int(key)]} for key in keys]

    def data(train: Sequence[int], val: Sequence[int]) -> LocalClientData:
        entries = [[Entry(str(i), str(i), 1) for i in own] for own in (train, val)]
        return LocalClientData(*entries, Vectors(), load, LocalTraining(0.1, 0.0, 4, 1, 1.0, "sgd"))

    clients = {f"client-{n:04d}": data(range(TEXTS * n, TEXTS * (n + 1)), ()) for n in range(CLIENTS)}
    private = Private.begin(Blobs(folder), {})
    inner = InProcess(algorithm, clients, {"server": data((), range(100))}, private, seed=1, job="key")
    engine = Faulty(inner, FAULTS, RULES.deadline, seed=1, sends=algorithm.sends)
    callbacks = [Stopping(ROUNDS, 10**6), Checkpointing("key", private), memory]
    begun = initial_progress(algorithm, initial_linears({"head": (WIDTH, LABELS)}, 1), engine)
    who = Participation(clients_per_round=DRAWN)
    return run_rounds(algorithm, engine, begun, who, callbacks, seed=1, rules=RULES, job="key")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_thousand_clients_for_three_hundred_rounds(tmp_path: Path, name: str) -> None:
    process, memory = psutil.Process(), Memory()
    before = process.num_fds()
    progress = run(ALGORITHMS[name], tmp_path / "one", memory)
    assert progress.round == ROUNDS
    assert {"missing", "refused"} <= {event.kind for event in progress.events}
    growth = memory.after[ROUNDS] / memory.after[SETTLED]
    print(f"{name}: {len(progress.events)} events, {growth:.3f} of round {SETTLED}'s memory")
    assert memory.after[ROUNDS] <= FLAT * memory.after[SETTLED]
    assert process.num_fds() <= before + 1  # the checkpoint's, until it is collected
    assert process.children() == []
    assert torch.isfinite(progress.server.adapter["head.weight"]).all()
