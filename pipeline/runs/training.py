"""One training, from its spec and its clients' data to the last round; it resumes at its last finished round."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

import torch

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.checkpoint import load_progress, save_progress
from pipeline.federated.local import LocalTraining, StoredClientData
from pipeline.federated.loop import POOLED, Progress, Schedule, run_rounds, start
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.entry import Entry
from pipeline.model.inputs import inputs
from pipeline.model.loader import Loader
from pipeline.model.lora import init_lora
from pipeline.plan.orders import TrainSpec
from pipeline.runs.index import Encoded
from pipeline.workspace import layout
from pipeline.workspace.files import locked
from pipeline.workspace.progress import OnRound, say
from pipeline.workspace.progress import progress as progress_bar


def train(spec: TrainSpec, encoded: Encoded, key: str, run_id: str, on_round: OnRound) -> Progress:
    """Train from the last finished round, if there is one; `run_id` is what messages call it.

    Args:
        key: the training's name. Where two processes want one training, the second waits, and finds it done.

    Raises:
        QuorumError: the checkpoint is damaged, or a loss or a gradient is not finite.
    """
    with locked(layout.checkpoint_lock(key)):
        return _train(spec, encoded, key, run_id, on_round)


def _train(spec: TrainSpec, encoded: Encoded, key: str, run_id: str, on_round: OnRound) -> Progress:
    checkpoint = layout.checkpoints() / key
    algorithm = bind(spec)
    schedule = Schedule(spec.rounds, spec.patience, spec.clients_per_round, spec.joins)
    judged = f"{algorithm.evaluates}_validation_loss"
    done = load_progress(checkpoint, key)
    if done is not None:
        if not schedule.is_over(done):
            say(f"train {run_id}: resuming after round {done.round}")
        for number in range(1, done.round + 1):
            on_round([row for row in done.history if row["round"] == number])
        if schedule.is_over(done):
            say(f"train {run_id}: has been trained, under this name or another")
            return done
    from pipeline.model.loading import choose_device, load_backbone  # seconds, which a finished training saves

    device = choose_device(spec.device)
    backbone = load_backbone(layout.BACKBONE, spec.adapted_layers, device)
    initial = _initial(spec, backbone)
    passes = (spec.rounds - (done.round if done else 0)) * spec.local_epochs * algorithm.passes
    examples = sum(len(splits["train"]) for splits in encoded.clients.values())
    with progress_bar(f"train {run_id}", passes * examples) as advance:
        trained, evaluated = _clients(spec, encoded, backbone, algorithm, device, advance)

        def finished(progress: Progress) -> None:
            save_progress(checkpoint, key, progress)
            rows = [row for row in progress.history if row["round"] == progress.round]
            on_round(rows)
            brief = [f"{r['client']} {_trained(r['train_loss'])}, validation {r[judged]:.3f}" for r in rows]
            say(f"train {run_id}: round {progress.round}: " + "; ".join(brief))

        return run_rounds(
            algorithm,
            trained,
            evaluated,
            done or start(algorithm, trained, initial),
            schedule,
            seed=spec.seed,
            on_round=finished,
        )


def _initial(spec: TrainSpec, backbone: Backbone) -> Adapter:
    """The adapter that everyone begins with, of the spec's kind."""
    if spec.lora_rank is None:
        return init_adapter(backbone.adapted_layers, backbone.width, spec.bottleneck or 0, spec.seed)
    shapes = backbone.lora_shapes()
    if not shapes:
        raise QuorumError("adapter: lora acts above the first adapted layer; set adapted_layers: 2 or more")
    return init_lora(shapes, spec.lora_rank, spec.seed)


def _trained(loss: float | None) -> str:
    return "was not drawn" if loss is None else f"train {loss:.3f}"


def bind(spec: TrainSpec) -> Algorithm:
    """The spec's algorithm with its hyperparameters; its module is named there, so no other one is a dependency."""
    module = importlib.import_module(spec.algorithm)
    algorithm: Algorithm = module.build(module.Hyperparameters(**spec.hyperparameters))
    return algorithm


def _clients(
    spec: TrainSpec,
    encoded: Encoded,
    backbone: Backbone,
    algorithm: Algorithm,
    device: torch.device,
    advance: Callable[[int], None],
) -> tuple[dict[str, StoredClientData], dict[str, StoredClientData]]:
    """Who trains and who is evaluated: the same clients, or all their data as one."""
    loader = Loader(device)
    everything = [e for splits in encoded.clients.values() for own in splits.values() for e in own]
    seen, load = inputs(spec, backbone, loader, everything, dropped=spec.dropout)
    local = LocalTraining(spec.learning_rate, spec.weight_decay, spec.batch_size, spec.local_epochs, spec.clip_norm)

    def data(train: list[Entry], val: list[Entry]) -> StoredClientData:
        marks = (
            None if algorithm.marks is None else [_marks(entry, backbone, loader, algorithm.marks) for entry in train]
        )
        return StoredClientData(train, val, seen, load, local, advance, marks)

    clients = {name: data(splits["train"], splits["val"]) for name, splits in encoded.clients.items()}
    if not algorithm.pooled:
        return clients, clients
    pooled = [entry for splits in encoded.clients.values() for entry in splits["train"]]
    return {POOLED: data(pooled, [])}, clients


def _marks(
    entry: Entry, backbone: Backbone, loader: Loader, mark: Callable[[Sequence[str]], Sequence[bool]]
) -> torch.Tensor:
    """Which target tokens of an example its algorithm marks, boolean (T,)."""
    tokens = loader.training([entry.key])[0]["targets"].tolist()
    return torch.tensor(mark(backbone.pieces(tokens)), dtype=torch.bool)
