"""One training, from its knobs and its clients' data to the last round; resumes at its last finished round."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from pipeline.clients.manifest import Manifest
from pipeline.errors import QuorumError, listed
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Checkpointing, Reporting, SavingRounds, Stopping
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.engine import EVENT_COLUMNS, Engine
from pipeline.federated.history import OnRound
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Private, Progress
from pipeline.federated.tolerance import STRICT
from pipeline.model.adapter import Adapter
from pipeline.plan.learner import Training
from pipeline.runs.index import Index
from pipeline.workspace import layout
from pipeline.workspace.files import locked
from pipeline.workspace.progress import progress as progress_bar
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table

POOLED = "pooled"  # the name of the only client of a method that pools all data

Advance = Callable[[int], None]  # counts trained examples
Open = Callable[[Advance, Algorithm, Private], tuple[Adapter, Engine]]
"""(callback, the algorithm, this process's client states) -> the initial adapter and the engine."""


class Finished(NamedTuple):
    """A training after its last round: the server's progress, and its clients' private states."""

    progress: Progress
    private: Private


def train(order: Training, open_: Open, examples: int, key: str, run_id: str, on_round: OnRound) -> Finished:
    """Train, from the last finished round if there is one; `run_id` is the name in messages.

    Args:
        open_: loads the clients; called only if a round is left to train.
        examples: training examples of a round's clients, on average, for the progress bar.
        key: the training's key. If two processes start one training, the second waits and finds it finished.
        on_round: called with each round's rows; with no rows as soon as the training has its lock.

    A damaged checkpoint is removed, and the training begins again.

    Raises QuorumError if a loss or a gradient is not finite.
    """
    with locked(layout.checkpoint_lock(key)):
        on_round([])
        folder = layout.checkpoints() / key
        progress, private = _saved(folder, key, run_id) or (None, Private.begin(Blobs(folder), {}))
        stopping = Stopping(order.rounds, order.patience, order.joins)
        if progress is not None:
            for number in range(1, progress.round + 1):
                on_round([row for row in progress.history if row.round == number])
            if stopping.is_over(progress):
                say(f"train {run_id}: has been trained, under this name or another")
                return Finished(progress, private)
            say(f"train {run_id}: resuming after round {progress.round}")
        algorithm = bind(order)
        passes = (order.rounds - (progress.round if progress else 0)) * order.local_epochs * algorithm.passes
        with progress_bar(f"train {run_id}", passes * examples) as advance:
            initial, engine = open_(advance, algorithm, private)
            progress = run_rounds(
                algorithm,
                engine,
                progress or initial_progress(algorithm, initial, engine),
                _participation(order),
                [
                    stopping,
                    *([SavingRounds(key, private)] if order.keep_rounds else []),
                    Checkpointing(key, private),
                    Reporting(f"train {run_id}", algorithm.evaluates, on_round),
                ],
                seed=order.seed,
                rules=order.tolerance or STRICT,
                job=key,
            )
            return Finished(progress, private)


def _saved(folder: Path, key: str, run_id: str) -> tuple[Progress, Private] | None:
    try:
        return load_progress(folder, key)
    except QuorumError as error:
        if error.code != "damaged":
            raise
        say(f"train {run_id}: {str(error).partition('; ')[0]}; it was removed, and the training begins again")
        shutil.rmtree(folder)
        return None


def train_learner(
    training: Training, manifest: Manifest, index: Index, key: str, run_id: str, on_round: OnRound
) -> Finished:
    """Train on the clients of a manifest in this process; see `train`."""

    def open_(advance: Advance, algorithm: Algorithm, private: Private) -> tuple[Adapter, Engine]:
        from pipeline.runs.learners import in_process  # seconds, which a training that is finished saves

        return in_process(training, manifest, index, key, advance, algorithm, private)

    sizes = {name: len(own["train"]) for name, own in manifest.items() if own["train"]}
    drawn = [name for number in range(training.rounds) for name in clients_of_round(training, sizes, number + 1)]
    examples = round(sum(sizes[name] for name in drawn) / training.rounds)
    return train(training, open_, examples, key, run_id, on_round)


def write_events(run_id: str, order: Training, progress: Progress) -> None:
    """Write events.csv, one line for each event, if the order has faults or a tolerance, or if events happened."""
    if order.faults is not None or order.tolerance is not None or progress.events:
        write_table(layout.events(run_id), [asdict(event) for event in progress.events], EVENT_COLUMNS)


def clients_of_round(order: Training, sizes: Mapping[str, int], number: int) -> list[str]:
    """The clients that are drawn for a round, of all, of which none joins late; `sizes`: client -> its examples."""
    draw, count = bind(order).draw_of(number), order.clients_per_round
    return _participation(order).select([*sizes], count, order.seed, draw, sizes)


def _participation(order: Training) -> Participation:
    return Participation(order.clients_per_round, order.joins, order.draw)


def bind(order: Training) -> Algorithm:
    """Build the order's algorithm with its hyperparameters; the order names its module, the only one it depends on."""
    module = listed(order.algorithm)
    algorithm: Algorithm = module.build(module.Hyperparameters(**order.hyperparameters))
    return algorithm
