"""Many clients from one data set: dealing texts out, a round of all, and what clients keep on disk.

Texts are made up, their frozen vectors 384 numbers; a head of 20 classes trains. A round's time should grow with the
clients that take part, and memory not at all: SCAFFOLD keeps a variate a client, which lies on disk.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.comparison import Row, Spread, peak_memory
from pipeline.clients.dirichlet import partition
from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import ClientState
from pipeline.federated.algorithms import fedavg, scaffold
from pipeline.federated.blobs import FILE, Blobs
from pipeline.federated.callbacks import Checkpointing, Stopping
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.state import Private
from pipeline.model.backbone import Prefix
from pipeline.model.entry import Entry
from pipeline.tasks.heads import applied, initial_linears

TEXTS, LABELS, WIDTH = 100_000, 20, 384
DEALT, SIZES = 1_000, (1_000, 10_000)
AIM = 5.0
"""Seconds, for dealing out 100,000 texts to 1,000 clients."""
LINEAR = 1.5
"""How much more than in proportion a round of ten times as many clients may take."""


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


def rows(repeats: int) -> list[Row]:
    labels = [str(number % LABELS) for number in range(TEXTS)]
    ids = list(map(str, range(TEXTS)))
    seconds = []
    for seed in range(repeats):
        began = time.perf_counter()
        partition(ids, labels, DEALT, seed=seed, dataset="made-up", alpha=1.0, beta=1.0)
        seconds.append(time.perf_counter() - began)
    dealt = sorted(seconds)[len(seconds) // 2]
    found = {count: _alone(count) for count in SIZES}
    few, many = (found[count] for count in SIZES)
    growth = many["round_seconds"] / few["round_seconds"] / (SIZES[1] / SIZES[0])
    return [
        Row(
            f"dealing {TEXTS:,} texts out to {DEALT:,} clients",
            f"an aim of {AIM:g} s",
            ratio=AIM / dealt,
            promised=1.0,
            ours=Spread(dealt, min(seconds), max(seconds), repeats),
        ),
        Row(
            f"a round of {SIZES[1]:,} clients with states on disk",
            f"{SIZES[1] // SIZES[0]} rounds of {SIZES[0]:,}",
            ratio=1 / growth,
            promised=1 / LINEAR,
            ours=Spread(many["round_seconds"], many["round_seconds"], many["round_seconds"], 1),
            details={f"{count:,} clients": own for count, own in found.items()},
        ),
    ]


def _alone(clients: int) -> dict[str, float]:
    """Measured in a process of its own, whose largest memory is that of these clients."""
    code = f"import json; from benchmarks.federations import measured; print(json.dumps(measured({clients})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def made_up(vectors: torch.Tensor, targets: torch.Tensor) -> tuple[dict[str, LocalClientData], LocalClientData]:
    """Clients of ten texts each, and what the server evaluates on, of vectors (texts, width) and labels (texts, 1)."""

    def load(keys: Any) -> list[Prefix]:
        return [{"hidden": vectors[int(key)], "targets": targets[int(key)]} for key in keys]

    def entries(texts: range) -> list[Entry]:
        return [Entry(str(i), str(i), 1) for i in texts]

    rest: tuple[Any, ...] = Vectors(), load, LocalTraining(0.1, 0.0, 8, 1, 1.0, "sgd")
    count = len(vectors) // 10
    clients = {f"client-{n:05d}": LocalClientData(entries(range(10 * n, 10 * n + 10)), [], *rest) for n in range(count)}
    return clients, LocalClientData([], entries(range(min(500, 10 * count))), *rest)


def measured(clients: int) -> dict[str, float]:
    """Two rounds of all clients, SCAFFOLD's and FedAvg's: seconds of the second, MB of memory and of disk."""
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(clients * 10, WIDTH, generator=generator)
    targets = torch.randint(LABELS, (clients * 10, 1), generator=generator)
    before = peak_memory()

    trained, judged = made_up(vectors, targets)
    initial = initial_linears({"head": (WIDTH, LABELS)}, 1)
    found: dict[str, float] = {}
    for name, algorithm in (
        ("stateless", fedavg.build(fedavg.Hyperparameters())),
        ("round", scaffold.build(scaffold.Hyperparameters())),
    ):
        with TemporaryDirectory() as folder:
            private = Private.begin(
                Blobs(Path(folder)), {who: ClientState(initial) for who in trained} if algorithm.stateful else {}
            )
            engine = InProcess(algorithm, trained, {"server": judged}, private, seed=1)
            saving, progress = Checkpointing("key", private), initial_progress(algorithm, initial, engine)
            for rounds in (1, 2):
                began = time.perf_counter()
                stopping = Stopping(rounds, 99)
                progress = run_rounds(algorithm, engine, progress, Participation(), [stopping, saving], seed=1)
                found[f"{name}_seconds"] = time.perf_counter() - began
            found[f"{name}_disk_mb"] = (Path(folder) / FILE).stat().st_size / 1e6
    return found | {"memory_mb": peak_memory() - before}
