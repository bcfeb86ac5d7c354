"""Learners loaded from a workspace: a backbone with its task's head, its initial tensors, and its clients' data."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import NamedTuple

from pipeline.clients.manifest import Manifest
from pipeline.engines.faulty import Faulty
from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientState
from pipeline.federated.engine import Engine
from pipeline.federated.head import BackboneWithHead, Load
from pipeline.federated.local import LocalClientData
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.state import Private
from pipeline.federated.tolerance import STRICT
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.encoder import Encoder
from pipeline.model.encoder_loading import load_encoder
from pipeline.model.entry import Entry
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.loading import choose_device, load_backbone
from pipeline.model.lora import init_lora
from pipeline.model.precision import resolve
from pipeline.model.presets import ENCODERS
from pipeline.model.processor import compute_with
from pipeline.model.store import PrefixStore
from pipeline.model.uncached import UncachedBackbone, load_ids
from pipeline.plan.learner import Learner, Reader, Training
from pipeline.runs.index import Index
from pipeline.runs.training import POOLED, Advance
from pipeline.tasks.encoded import EncoderWithHead
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.record import Json

CACHE_BYTES = 2_000_000_000
"""How much of the store a training above an encoder caches: opening the file of a text takes longer than reading."""


def model_of(reader: Reader) -> Backbone | Encoder:
    """Load a frozen model, and compute with its threads from now on.

    Raises QuorumError if it is missing or damaged, or if this machine has no such device or precision.
    """
    resolve(reader.precision, reader.device)
    compute_with(reader.threads)
    view, device = reader.view, choose_device(reader.device)
    folder = layout.backbone(view.backbone)
    if view.backbone not in ENCODERS:
        return load_backbone(folder, view.adapted_layers or 0, device, reader.precision)
    return load_encoder(folder, FrozenPart.parse(view.frozen or "none"), device, reader.precision, view.layers)


def digest_of(backbone: str) -> str:
    """The sha256 of a backbone's weights."""
    about: Json = read_json(layout.backbone(backbone) / layout.ABOUT_BACKBONE, remedy="run `dvc repro backbone`")
    return str(about["digest"])


def reading(
    learner: Learner, model: Backbone | Encoder, entries: Iterable[Entry], *, trains: bool = False
) -> tuple[BackboneWithHead, Load]:
    """A model under its task's head, and a function that loads examples for it.

    `entries`: all examples that will be loaded. `trains`: whether dropout is applied.
    """
    stored = PrefixStore(layout.store(), model.device, CACHE_BYTES if isinstance(model, Encoder) else 0).training
    if isinstance(model, Encoder):
        return EncoderWithHead(model, load_task(learner.task)), stored
    if not learner.uncached:
        return model, stored
    uncached = UncachedBackbone(model, learner.adapted_positions == "all", learner.dropout if trains else 0.0)
    return uncached, load_ids(list(entries), model.device)


def initial(learner: Learner, model: Backbone | Encoder, classes: tuple[str, ...], seed: int) -> Adapter:
    """Create the tensors with which all clients begin. Raises QuorumError for LoRA above fewer than two layers."""
    size = learner.size or 0
    if isinstance(model, Encoder):
        body = model.initial(learner.above, size, seed)
        head: Adapter = load_task(learner.task).initial(model, classes, seed)
        return body | head
    if learner.above != "lora":
        return init_adapter(model.adapted_layers, model.width, size, seed)
    shapes = model.lora_shapes()
    if not shapes:
        raise QuorumError("above: lora acts above the first adapted layer; set adapted_layers: 2 or more")
    return init_lora(shapes, size, seed)


class Clients(NamedTuple):
    """The initial adapter, the clients that train, and the clients that are evaluated."""

    initial: Adapter
    trained: Mapping[str, LocalClientData]
    evaluated: Mapping[str, LocalClientData]


def clients_of(training: Training, manifest: Manifest, index: Index, advance: Advance, *, pooled: bool) -> Clients:
    """Build the clients: those with training examples train, those with validation examples are evaluated.

    `pooled`: whether one client trains on the examples of all.
    """
    model = model_of(training.learner)
    entries = [entry for own in index.entries.values() for entry in own]
    seen, load = reading(training.learner, model, entries, trains=True)
    same = {field.name for field in fields(LocalTraining)} - {"optimizer", "schedule"}
    knobs = {name: getattr(training, name) for name in same}
    local = LocalTraining(**knobs, optimizer=training.client_optimizer, schedule=training.client_schedule)

    def data(train: Iterable[str], val: Iterable[str], weight: float = 1.0) -> LocalClientData:
        return LocalClientData(index.learned(train), index.learned(val), seen, load, local, advance, weight)

    clients = {name: data(own["train"], own["val"], training.weights.get(name, 1.0)) for name, own in manifest.items()}
    trained = {name: one for name, one in clients.items() if one.train}
    if pooled:
        trained = {POOLED: data([identity for own in manifest.values() for identity in own["train"]], [])}
    begins = initial(training.learner, model, index.classes, training.seed)
    return Clients(begins, trained, {name: one for name, one in clients.items() if one.val})


def in_process(
    training: Training,
    manifest: Manifest,
    index: Index,
    key: str,
    advance: Advance,
    algorithm: Algorithm,
    private: Private,
) -> tuple[Adapter, Engine]:
    """Open all clients in this process, with the training's simulated faults if it has any."""
    begins, trained, evaluated = clients_of(training, manifest, index, advance, pooled=algorithm.pooled)
    if not private.states and (algorithm.stateful or set(evaluated) & set(trained)):
        private.states.update({name: ClientState(begins) for name in trained})
    engine: Engine = InProcess(algorithm, trained, evaluated, private, seed=training.seed, job=key)
    if training.faults is not None:
        deadline = (training.tolerance or STRICT).deadline
        engine = Faulty(engine, training.faults, deadline, seed=training.seed, sends=algorithm.sends)
    return begins, engine
