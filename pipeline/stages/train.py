"""One run at one seed -> models/<run>: its adapters, its history, and which tokens were distilled."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from pipeline import layout
from pipeline.encoded import Encoded, read_encoded, training_key
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Kind
from pipeline.federated.bits import pack_bits
from pipeline.federated.checkpoint import load_progress, save_progress
from pipeline.federated.local import LocalTraining, StoredClientData
from pipeline.federated.loop import POOLED, Progress, Schedule, run_rounds, start
from pipeline.files import locked, write_bytes, write_json
from pipeline.inputs import inputs
from pipeline.loader import Loader
from pipeline.model.adapter import Adapter, init_adapter, pack, write_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.entry import Entry
from pipeline.model.lora import init_lora
from pipeline.progress import OnRound, say
from pipeline.progress import progress as progress_bar
from pipeline.spec import TrainSpec, TrainStageSpec, read_spec
from pipeline.tables import write_table

HISTORY = (
    "round",
    "client",
    "train_loss",
    "validation_loss",
    "local_validation_loss",
    "server_validation_loss",
    "teacher_validation_loss",
    "share_distilled",
    "teacher_entropy",
    "tau",
    "steps",
    "bytes_down",
    "bytes_up",
    "best",
)


def run(run_id: str, on_round: OnRound = lambda rows: None) -> None:
    """Train, or resume; `on_round` is told every finished round's rows."""
    spec = read_spec(layout.stage_spec("train", run_id), TrainStageSpec)
    encoded = read_encoded(run_id)
    folder = layout.MODELS / run_id
    shutil.rmtree(folder, ignore_errors=True)
    if spec.training is None or spec.evaluate is None:
        _export_untrained(folder, list(encoded.clients))
        return
    key = training_key(spec.training, encoded)
    note = layout.timings() / "train" / f"{run_id}.json"
    if not encoded.clients:
        _export_untrained(folder, [])
        write_json(note, {"seconds": 0.0, "rounds": [], "training": key})
        return
    # A queue's workers may want one training under two names: the second waits, and finds it done.
    with locked(layout.checkpoints() / f"{key}.lock"):
        finished = train(spec.training, encoded, key, run_id, on_round)
    _export(folder, finished, spec.evaluate, encoded)
    rows = [{k: row[k] for k in ("round", "client", "seconds")} for row in finished.history]
    # A pooled training's one time stands in every client's row.
    total = sum({(r["round"], r["seconds"]): r["seconds"] for r in rows}.values())
    write_json(note, {"seconds": total, "rounds": rows, "training": key})


def train(spec: TrainSpec, encoded: Encoded, key: str, run_id: str, on_round: OnRound) -> Progress:
    """Train from the last finished round, if there is one; `run_id` is what messages call it."""
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


def _export_untrained(folder: Path, clients: list[str]) -> None:
    """The bare backbone: every adapter is the empty one; a run that is left out has no clients."""
    for client in clients:
        write_adapter(folder / "adapters" / f"{client}.safetensors", {}, {"round": 0})
    write_table(folder / "history.csv", [], HISTORY)
    write_bytes(folder / "distilled.safetensors", pack({}))


def _export(folder: Path, progress: Progress, evaluate: Kind, encoded: Encoded) -> None:
    best = progress.best[evaluate]
    for client, kept in best.items():
        about = {"round": kept.round, "validation_loss": kept.loss}
        write_adapter(folder / "adapters" / f"{client}.safetensors", kept.adapter, about)
        if "server" in progress.best:
            write_adapter(folder / "adapters" / f"{client}.teacher.safetensors", kept.teacher)
    for kind in progress.best.keys() - {evaluate}:
        for client, kept in progress.best[kind].items():
            about = {"round": kept.round, "validation_loss": kept.loss}
            write_adapter(folder / "adapters" / f"{client}.{kind}.safetensors", kept.adapter, about)
    if "server" in progress.best:
        write_adapter(folder / "adapters" / "server.safetensors", progress.server.adapter)
    last = {client: progress.clients.get(client, progress.clients.get(POOLED)) for client in best}
    for client, state in last.items():
        final = progress.server.adapter if evaluate == "server" or state is None else state.adapter
        if best[client].round != progress.round:
            write_adapter(folder / "adapters" / f"{client}.last.safetensors", final, {"round": progress.round})
    scored = f"{evaluate}_validation_loss"
    rows = [
        row | {"validation_loss": row[scored], "best": int(best[row["client"]].round == row["round"])}
        for row in progress.history
    ]
    write_table(folder / "history.csv", rows, HISTORY)
    bits = {client: pack_bits(rows) for client, rows in progress.distilled.items()}
    lengths = {client: sum(e.tokens for e in encoded.clients[client]["train"]) for client in bits if client != POOLED}
    write_bytes(folder / "distilled.safetensors", pack(bits, {"tokens": lengths}))
