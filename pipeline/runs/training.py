"""One training, from its knobs and its clients' data to the last round; it resumes at its last finished round."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks.reporting import Reporting
from pipeline.federated.callbacks.stopping import Stopping
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
"""What the one client of a method that pools all data is called."""


@dataclass(frozen=True)
class Learners:
    """Who learns what: the first adapter of all, the clients that train, and those that are scored."""

    initial: Adapter
    trained: Mapping[str, LocalClientData]
    evaluated: Mapping[str, LocalClientData]


Load = Callable[[Callable[[int], None], bool], Learners]
"""(told of examples as they are trained on, whether all data are one client's) -> the learners, loaded."""


class Opened(NamedTuple):
    """The first adapter of all, who runs the clients, and how many examples these have."""

    initial: Adapter
    engine: Engine
    examples: int


Open = Callable[[Callable[[int], None], Algorithm, Private], Opened]
"""(told of examples as they are trained on, the algorithm, what this process's clients keep) -> what trains."""


@dataclass(frozen=True)
class Finished:
    """A training after its last round: the server's side, and what its clients hold."""

    progress: Progress
    private: Private


def train(order: FederatedKnobs, open_: Open, examples: int, key: str, run_id: str, on_round: OnRound) -> Finished:
    """Train from the last finished round, if there is one; `run_id` is what messages call it.

    Args:
        open_: called only where a round is left to train.
        examples: how many train, of all clients.
        key: the training's name. Where two processes want one training, the second waits, and finds it done.
        on_round: told each round's rows; of no round once the training's lock is held.

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
    # Seconds of imports, which a finished training saves.
    from pipeline.federated.callbacks.checkpointing import Checkpointing
    from pipeline.federated.callbacks.saving_rounds import SavingRounds
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
    """All clients in this process; those that fail as the order says, where it does."""

    def open_(advance: Callable[[int], None], algorithm: Algorithm, private: Private) -> Opened:
        from pipeline.engines.faulty import Faulty
        from pipeline.engines.in_process import InProcess
        from pipeline.federated.algorithm import ClientState

        learners = load(advance, algorithm.pooled)
        trained, evaluated = learners.trained, learners.evaluated
        if not private.states and (algorithm.stateful or set(evaluated) & set(trained)):
            private.states.update({name: ClientState(learners.initial) for name in trained})
        owner = dict.fromkeys(evaluated, POOLED) if algorithm.pooled else {}
        engine: Engine = InProcess(algorithm, trained, evaluated, private, seed=order.seed, trained_by=owner, job=key)
        if order.faults is not None:
            deadline = (order.tolerance or STRICT).deadline
            engine = Faulty(engine, order.faults, deadline, seed=order.seed, sends=algorithm.sends)
        return Opened(learners.initial, engine, sum(data.examples for data in trained.values()))

    return open_


def write_events(run_id: str, order: FederatedKnobs, progress: Progress) -> None:
    """What went wrong, a line an event; of a training that was told what might, or takes answers as they come."""
    if order.faults is not None or order.tolerance is not None or progress.events:
        write_table(layout.events(run_id), [asdict(event) for event in progress.events], EVENT_COLUMNS)


def bind(order: FederatedKnobs) -> Algorithm:
    """The order's algorithm with its hyperparameters; its module is named there, so no other one is a dependency."""
    module = importlib.import_module(order.algorithm)
    algorithm: Algorithm = module.build(module.Hyperparameters(**order.hyperparameters))
    return algorithm


def local_training(order: FederatedKnobs) -> LocalTraining:
    """How a client trains."""
    return LocalTraining(
        order.learning_rate,
        order.weight_decay,
        order.batch_size,
        order.local_epochs,
        order.clip_norm,
        order.client_optimizer,
        order.client_schedule,
    )
