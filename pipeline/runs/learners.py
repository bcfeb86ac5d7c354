"""Learners loaded from a workspace: a backbone with its task's head, its initial tensors, and its clients' data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.clients.manifest import Manifest
from pipeline.errors import QuorumError
from pipeline.federated.history import OnRound
from pipeline.model.entry import Entry
from pipeline.model.presets import ENCODERS
from pipeline.plan.learner import Learner
from pipeline.plan.orders import Training
from pipeline.runs.index import Index
from pipeline.runs.training import POOLED, Clients, Finished, in_process, local_training, train
from pipeline.tasks.task import load_task
from pipeline.workspace import layout

if TYPE_CHECKING:  # these imports take seconds, and a finished training needs none
    from pipeline.federated.local import LocalClientData
    from pipeline.federated.token_figures import BackboneWithHead, Load
    from pipeline.model.adapter import Adapter
    from pipeline.model.backbone import Backbone
    from pipeline.model.encoder import Encoder

CACHE_BYTES = 2_000_000_000
"""How much of the store a training above an encoder caches: opening the file of a text takes longer than reading."""


def model_of(learner: Learner) -> Backbone | Encoder:
    """Load a learner's frozen model, and compute with the learner's threads from now on.

    Raises:
        QuorumError: it is missing or damaged, or this machine has no such device or precision.
    """
    from pipeline.model.loading import choose_device, load_backbone
    from pipeline.model.precision import resolve
    from pipeline.model.processor import compute_with

    resolve(learner.precision, learner.device)
    compute_with(learner.threads)
    view, device = learner.view, choose_device(learner.device)
    folder = layout.backbone(view.backbone)
    if view.backbone not in ENCODERS:
        return load_backbone(folder, view.adapted_layers or 0, device, learner.precision)
    from pipeline.model.encoder_loading import load_encoder
    from pipeline.model.frozen_part import FrozenPart

    return load_encoder(folder, FrozenPart.parse(view.frozen or "none"), device, learner.precision, view.layers)


def digest_of(backbone: str) -> str:
    """The sha256 of a backbone's weights."""
    from pipeline.model.loading import backbone_digest

    return backbone_digest(layout.backbone(backbone))


def reading(
    learner: Learner, model: Backbone | Encoder, entries: Iterable[Entry], *, trains: bool = False
) -> tuple[BackboneWithHead, Load]:
    """A model under its task's head, and a function that loads examples for it.

    Args:
        entries: all examples that will be loaded.
        trains: whether dropout is applied.
    """
    from pipeline.model.encoder import Encoder
    from pipeline.model.loader import Loader
    from pipeline.model.uncached import UncachedBackbone, load_ids
    from pipeline.tasks.encoded import EncoderWithHead

    if isinstance(model, Encoder):
        load = Loader(layout.store(), model.device, CACHE_BYTES).training
        return EncoderWithHead(model, load_task(learner.task)), load
    if not learner.uncached:
        return model, Loader(layout.store(), model.device).training
    uncached = UncachedBackbone(model, learner.adapted_positions == "all", learner.dropout if trains else 0.0)
    return uncached, load_ids(list(entries), model.device)


def initial(learner: Learner, model: Backbone | Encoder, classes: tuple[str, ...], seed: int) -> Adapter:
    """Create the tensors with which all clients begin.

    Raises:
        QuorumError: LoRA with fewer than two adapted layers.
    """
    from pipeline.model.adapter import init_adapter
    from pipeline.model.encoder import Encoder
    from pipeline.model.lora import init_lora

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


def train_learner(
    training: Training, manifest: Manifest, index: Index, key: str, run_id: str, on_round: OnRound
) -> Finished:
    """Train on the clients of a manifest; see `train`."""

    def load(advance: Callable[[int], None], pooled: bool) -> Clients:
        return clients_of(training, manifest, index, advance, pooled=pooled)

    sizes = [len(own["train"]) for own in manifest.values() if own["train"]]
    share = min(1.0, (training.clients_per_round or len(sizes)) / len(sizes))
    return train(training, in_process(training, key, load), round(share * sum(sizes)), key, run_id, on_round)


def clients_of(
    training: Training, manifest: Manifest, index: Index, advance: Callable[[int], None], *, pooled: bool
) -> Clients:
    """Build the clients: those with training examples train, those with validation examples are evaluated.

    Args:
        advance: counts trained examples.
        pooled: whether one client trains on the examples of all.
    """
    from pipeline.federated.local import LocalClientData

    model = model_of(training.learner)
    entries = [entry for own in index.entries.values() for entry in own]
    seen, load = reading(training.learner, model, entries, trains=True)
    local = local_training(training)

    def data(own: Mapping[Any, list[str]], weight: float = 1.0) -> LocalClientData:
        train, val = index.learned(own["train"]), index.learned(own["val"])
        return LocalClientData(train, val, seen, load, local, advance, weight)

    clients = {name: data(dict(own), training.weights.get(name, 1.0)) for name, own in manifest.items()}
    begins = initial(training.learner, model, index.classes, training.seed)
    evaluated = {name: one for name, one in clients.items() if one.val}
    if not pooled:
        return Clients(begins, {name: one for name, one in clients.items() if one.train}, evaluated)
    together = [identity for own in manifest.values() for identity in own["train"]]
    return Clients(begins, {POOLED: data({"train": together, "val": []})}, evaluated)
