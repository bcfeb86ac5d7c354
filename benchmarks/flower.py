"""Where Flower is installed, and running one side of a comparison in a process of its own.

Flower's pins (protobuf, typer, rich, …) contradict those of MLflow and DVC, so it lives in `.venv-flower`, which finds
torch and transformers in `.venv`: both sides run the same build of either.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.comparison import THEIRS
from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, write_adapter
from pipeline.workspace import layout

PYTHON = Path(".venv-flower/bin/python")
MISSING = "Flower is not installed; `make bench` installs it"


def installed() -> bool:
    return (layout.home() / PYTHON).is_file()


def in_a_process(module: str, side: str, *arguments: str) -> str:
    """What `python -m module side …` prints, by Flower's Python for the other side.

    Raises:
        QuorumError: it failed; with the end of what it said.
    """
    python = str(layout.home() / PYTHON) if side == THEIRS else sys.executable
    # Ray's workers look for this package there, and must not phone home.
    told = {"PYTHONPATH": str(layout.home()), "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [python, "-m", module, side, *arguments], check=False, capture_output=True, text=True, env=os.environ | told
    )
    if done.returncode:
        raise QuorumError(f"{module} {side}: failed: {' '.join(done.stderr.split())[-600:]}")
    return done.stdout


def simulate(
    clients: Sequence[str],
    rounds: int,
    begun: Adapter,
    examples: int,
    train: Callable[[Adapter, str, int], Adapter],
    final: Path,
) -> None:
    """Run FedAvg in Flower's simulation with all clients in every round; runs in Flower's Python alone.

    Args:
        begun: the server's first tensors.
        examples: of each client.
        train: (what the server sent, a client, the round from 1) -> what the client has trained.
        final: where the server's last tensors are written.
    """
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    client_app, server_app, everyone = ClientApp(), ServerApp(), len(clients)

    @client_app.train()  # type: ignore[untyped-decorator]
    def train_one(message: Message, context: Context) -> Message:
        client = clients[int(context.node_config["partition-id"])]
        arrays = message.content["arrays"].to_torch_state_dict()
        trained = train(arrays, client, int(message.content["config"]["server-round"]))
        content = {"arrays": ArrayRecord(trained), "metrics": MetricRecord({"num-examples": examples})}
        return Message(content=RecordDict(content), reply_to=message)

    @server_app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, _context: Context) -> None:
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=everyone, min_available_nodes=everyone)
        result = strategy.start(grid=grid, initial_arrays=ArrayRecord(begun), num_rounds=rounds)
        write_adapter(final, result.arrays.to_torch_state_dict())

    backend = {"client_resources": {"num_cpus": os.cpu_count() or 1, "num_gpus": 0.0}}
    run_simulation(server_app, client_app, num_supernodes=everyone, backend_config=backend)
