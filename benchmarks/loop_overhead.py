"""What the loop itself costs: a client-round with nothing to train, against Flower's simulation.

The model is one number and the client adds to it, so all that is timed is who is asked, what travels and how it is
averaged. Flower's start-up is left out: its time is that between the ends of its first and its last round.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks import flower
from benchmarks.comparison import OURS, THEIRS, Row, peak_memory, spread
from benchmarks.shapes import SHAPES
from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import ClientState, Fit, Pull, Trace
from pipeline.federated.algorithms import fedavg
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Stopping
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import Private
from pipeline.model.adapter import Adapter

CLIENTS, MANY = 1_000, 10_000
ROUNDS = 3
WHAT = "the loop alone, a client-round"
AGAINST = "Flower's simulation, the same client"


@dataclass(frozen=True, slots=True)
class Idle:
    """A client that returns what it is sent and a number of its own, so that no two clients' states are equal."""

    number: int
    examples: int = 1

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        objective: Objective = CROSS_ENTROPY,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:
        del rng, objective, pull, moments
        own = {name: tensor + self.number for name, tensor in start.items()}
        return Fit(own, Trace(loss=0.0, steps=0, seconds=0.0), {})

    def gradient(self, adapter: Adapter) -> Adapter:
        return adapter


REAL = 3
"""Clients whose adapters have the embedded backbone's size."""


def ours(clients: int, adapter: Adapter | None = None) -> float:
    """Seconds a client-round; the adapter is one number unless another is given."""
    trained = {f"client {number}": Idle(number) for number in range(clients)}
    algorithm = fedavg.build(fedavg.Hyperparameters())
    initial = adapter or {"weight": torch.zeros(1)}
    with TemporaryDirectory() as folder:
        private = Private.begin(Blobs(Path(folder)), {name: ClientState(initial) for name in trained})
        engine = InProcess(algorithm, trained, {}, private, seed=1)  # type: ignore[arg-type]  # without states
        progress = initial_progress(algorithm, initial, engine)
        began = time.perf_counter()
        run_rounds(algorithm, engine, progress, Participation(), [Stopping(ROUNDS, ROUNDS)], seed=1)
        return (time.perf_counter() - began) / (ROUNDS * clients)


def theirs(clients: int) -> float:
    """Seconds a client-round, of the rounds after the first."""
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    client_app, server_app = ClientApp(), ServerApp()
    ends: list[float] = []

    @client_app.train()  # type: ignore[untyped-decorator]
    def train(message: Message, _context: Context) -> Message:
        content = {"arrays": message.content["arrays"], "metrics": MetricRecord({"num-examples": 1})}
        return Message(content=RecordDict(content), reply_to=message)

    @server_app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, _context: Context) -> None:
        def note(_round: int, _arrays: ArrayRecord) -> MetricRecord:
            ends.append(time.perf_counter())
            return MetricRecord({})

        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)
        strategy.start(
            grid=grid, initial_arrays=ArrayRecord({"weight": torch.zeros(1)}), num_rounds=ROUNDS, evaluate_fn=note
        )

    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server_app, client_app, num_supernodes=clients, backend_config=backend)
    # The first end is that of the evaluation before any round.
    return (ends[-1] - ends[1]) / ((ROUNDS - 1) * clients)


def _in_a_process(side: str, clients: int) -> tuple[float, float]:
    """(seconds a client-round, the process's peak memory in MB)."""
    seconds, memory = flower.in_a_process("benchmarks.loop_overhead", side, str(clients)).split()[-2:]
    return float(seconds), float(memory)


def rows(repeats: int) -> list[Row]:
    sides = {"few": (OURS, CLIENTS), "many": (OURS, MANY)}
    if flower.installed():
        sides[THEIRS] = (THEIRS, CLIENTS)
    found = [{name: _in_a_process(*side) for name, side in sides.items()} for _ in range(repeats)]
    seconds = {name: spread([turn[name][0] for turn in found]) for name in sides}
    memory = {name: spread([turn[name][1] for turn in found]) for name in sides}
    real = spread([ours(REAL, SHAPES["SmolLM2-135M"].adapter()) for _ in range(repeats)])
    growth = Row(
        f"{WHAT}: {MANY:,} clients",
        f"{CLIENTS:,} clients (linear growth is 1)",
        ratio=seconds["few"].median / seconds["many"].median,
        promised=0.8,
        ours=seconds["many"],
        theirs=seconds["few"],
        details={"real_adapter": real.median},
    )
    flat = Row(
        f"{WHAT}: peak memory with {MANY:,} clients whose model is one number",
        f"{CLIENTS:,} clients (flat is 1)",
        ratio=memory["few"].median / memory["many"].median,
        promised=0.95,
        ours=memory["many"],
        theirs=memory["few"],
        unit="MB",
    )
    what = f"{WHAT}, {CLIENTS:,} clients"
    if THEIRS not in sides:
        return [growth, flat, Row(what, AGAINST, promised=50.0, skipped=flower.MISSING)]
    ratio = seconds[THEIRS].median / seconds["few"].median
    return [growth, flat, Row(what, AGAINST, ratio, 50.0, seconds["few"], seconds[THEIRS])]


if __name__ == "__main__":
    # Ray's workers find functions by their module's name, which here is `__main__`.
    from benchmarks import loop_overhead

    print({OURS: loop_overhead.ours, THEIRS: loop_overhead.theirs}[sys.argv[1]](int(sys.argv[2])), peak_memory())
