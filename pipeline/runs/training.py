"""One training, from its knobs and its clients' data to the last round; resumes at its last finished round."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Checkpointing, Reporting, SavingRounds, Stopping
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.engine import Engine
from pipeline.federated.events import EVENT_COLUMNS
from pipeline.federated.history import OnRound
from pipeline.federated.local import LocalClientData
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.state import Private, Progress
from pipeline.federated.tolerance import STRICT
from pipeline.model.adapter import Adapter
from pipeline.plan.orders import FederatedKnobs
from pipeline.workspace import layout
from pipeline.workspace.files import locked
from pipeline.workspace.progress import progress as progress_bar
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table

POOLED = "pooled"
"""The name of the only client of a method that pools all data."""


@dataclass(frozen=True)
class Clients:
    """The initial adapter, the clients that train, and the clients that are evaluated."""

    initial: Adapter
    trained: Mapping[str, LocalClientData]
    evaluated: Mapping[str, LocalClientData]


Load = Callable[[Callable[[int], None], bool], Clients]
"""(callback that counts trained examples, whether one client has all data) -> the loaded clients."""


class Opened(NamedTuple):
    """The initial adapter, the engine that runs the clients, and their number of training examples."""

    initial: Adapter
    engine: Engine
    examples: int


Open = Callable[[Callable[[int], None], Algorithm, Private], Opened]
"""(callback that counts trained examples, the algorithm, this process's client states) -> the engine."""


@dataclass(frozen=True)
class Finished:
    """A training after its last round: the server's progress, and its clients' private states."""

    progress: Progress
    private: Private


def train(order: FederatedKnobs, open_: Open, examples: int, key: str, run_id: str, on_round: OnRound) -> Finished:
    """Train, from the last finished round if there is one; `run_id` is the name in messages.

    Args:
        open_: loads the clients; called only if a round is left to train.
        examples: training examples of all clients in a round, for the progress bar.
        key: the training's key. If two processes start one training, the second waits and finds it finished.
        on_round: called with each round's rows; with no rows as soon as the training has its lock.

    Raises:
        QuorumError: the checkpoint is damaged, or a loss or a gradient is not finite.
    """
    with locked(layout.checkpoint_lock(key)):
        on_round([])
        folder = layout.checkpoints() / key
        stopping = Stopping(order.rounds, order.patience, order.joins)
        done = load_progress(folder, key)
        if done is None:
            return _go_on(order, open_, examples, folder, run_id, on_round, stopping, None)
        progress, private = done
        if not stopping.is_over(progress):
            say(f"train {run_id}: resuming after round {progress.round}")
        for number in range(1, progress.round + 1):
            on_round([row for row in progress.history if row.round == number])
        if stopping.is_over(progress):
            say(f"train {run_id}: has been trained, under this name or another")
            return Finished(progress, private)
        return _go_on(order, open_, examples, folder, run_id, on_round, stopping, Finished(progress, private))


def _go_on(
    order: FederatedKnobs,
    open_: Open,
    examples: int,
    folder: Path,
    run_id: str,
    on_round: OnRound,
    stopping: Stopping,
    done: Finished | None,
) -> Finished:
    """Train the rounds that are left."""
    from pipeline.federated.loop import Participation, initial_progress, run_rounds

    algorithm = bind(order)
    passes = (order.rounds - (done.progress.round if done else 0)) * order.local_epochs * algorithm.passes
    private = done.private if done else Private.begin(Blobs(folder), {})
    with progress_bar(f"train {run_id}", passes * examples) as advance:
        opened = open_(advance, algorithm, private)
        callbacks = [
            stopping,
            *([SavingRounds(folder.name, private)] if order.keep_rounds else []),
            Checkpointing(folder.name, private),
            Reporting(f"train {run_id}", algorithm.evaluates, on_round),
        ]
        progress = run_rounds(
            algorithm,
            opened.engine,
            done.progress if done else initial_progress(algorithm, opened.initial, opened.examples),
            Participation(order.clients_per_round, order.joins),
            callbacks,
            seed=order.seed,
            rules=order.tolerance or STRICT,
            job=folder.name,
        )
        return Finished(progress, private)


def in_process(order: FederatedKnobs, key: str, load: Load) -> Open:
    """Open all clients in this process, with the order's simulated faults if it has any."""

    def open_(advance: Callable[[int], None], algorithm: Algorithm, private: Private) -> Opened:
        from pipeline.engines.faulty import Faulty
        from pipeline.engines.in_process import InProcess
        from pipeline.federated.algorithm import ClientState

        clients = load(advance, algorithm.pooled)
        trained, evaluated = clients.trained, clients.evaluated
        if not private.states and (algorithm.stateful or set(evaluated) & set(trained)):
            private.states.update({name: ClientState(clients.initial) for name in trained})
        owner = dict.fromkeys(evaluated, POOLED) if algorithm.pooled else {}
        engine: Engine = InProcess(algorithm, trained, evaluated, private, seed=order.seed, trained_by=owner, job=key)
        if order.faults is not None:
            deadline = (order.tolerance or STRICT).deadline
            engine = Faulty(engine, order.faults, deadline, seed=order.seed, sends=algorithm.sends)
        return Opened(clients.initial, engine, sum(data.examples for data in trained.values()))

    return open_


def write_events(run_id: str, order: FederatedKnobs, progress: Progress) -> None:
    """Write events.csv, one line for each event, if the order has faults or a tolerance, or if events happened."""
    if order.faults is not None or order.tolerance is not None or progress.events:
        write_table(layout.events(run_id), [asdict(event) for event in progress.events], EVENT_COLUMNS)


def bind(order: FederatedKnobs) -> Algorithm:
    """Build the order's algorithm with its hyperparameters; the order names its module, the only one it depends on."""
    module = importlib.import_module(order.algorithm)
    algorithm: Algorithm = module.build(module.Hyperparameters(**order.hyperparameters))
    return algorithm


def local_training(order: FederatedKnobs) -> LocalTraining:
    """Return the order's settings of a client's training."""
    return LocalTraining(
        order.learning_rate,
        order.weight_decay,
        order.batch_size,
        order.local_epochs,
        order.clip_norm,
        order.client_optimizer,
        order.client_schedule,
    )
