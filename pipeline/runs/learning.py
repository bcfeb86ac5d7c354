"""Training on labelled texts: the layers above an encoder's cut, or a language model's adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clients.manifest import Manifest
from pipeline.federated.history import OnRound
from pipeline.federated.local import LocalClientData
from pipeline.federated.token_figures import BackboneWithHead
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.loader import Loader
from pipeline.model.processor import compute_with
from pipeline.plan.text_orders import Learner, TextTraining
from pipeline.plan.view import View
from pipeline.runs.text_encoding import Indexed, encoder_of, writer_of
from pipeline.runs.training import POOLED, Finished, Learners, in_process, local_training, train
from pipeline.tasks.encoded import EncoderWithHead
from pipeline.tasks.task import load_task, writes
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_json

CACHE_BYTES = 2_000_000_000
"""How much of the stored texts a training caches in memory."""


def key_of(order: TextTraining, manifest: Manifest, index: Indexed) -> str:
    """Hash a training's order and data."""
    used = sorted({i for own in manifest.values() for i in (*own["train"], *own["val"])})
    entries = [[i, [[entry.key, entry.tokens] for entry in index.entries[i][:1]]] for i in used]
    return sha256_json([order.model_dump(mode="json"), manifest, entries, index.classes, index.digest])


def train_on_texts(
    order: TextTraining, manifest: Manifest, index: Indexed, key: str, run_id: str, on_round: OnRound
) -> Finished:
    """Train on labelled texts; see `train`."""

    def learners(advance: Callable[[int], None], pooled: bool) -> Learners:
        return _learners(order, manifest, index, advance, pooled=pooled)

    clients = order.clients_per_round or len(manifest)
    sizes = sorted(len(own["train"]) for own in manifest.values() if own["train"])
    share = 1.0 if clients >= len(sizes) else clients / len(sizes)
    return train(order, in_process(order, key, learners), round(share * sum(sizes)), key, run_id, on_round)


def seen_through(learner: Learner, index: Indexed) -> tuple[BackboneWithHead, Adapter]:
    """Load a model under its task's head, and its initial trainable tensors."""
    compute_with(learner.threads)
    task = load_task(learner.task)
    if writes(task):
        writer = writer_of(learner.view, learner.device, learner.precision)
        return writer, init_adapter(writer.adapted_layers, writer.width, learner.size or 0, learner.seed)
    encoder = encoder_of(learner.view, learner.device, learner.precision)
    body = encoder.initial(learner.above, learner.size or 0, learner.seed)
    return EncoderWithHead(encoder, task), body | task.initial(encoder, index.classes, learner.seed)


def loader_of(view: View, device: Any) -> Loader:
    """Return a loader of stored entries, which caches the entries of short texts in memory."""
    return Loader(layout.store(), device, 0 if view.target_tokens else CACHE_BYTES)


def _learners(
    order: TextTraining, manifest: Manifest, index: Indexed, advance: Callable[[int], None], *, pooled: bool
) -> Learners:
    """Build the clients: those with training texts train, those with development texts are evaluated."""
    seen, initial = seen_through(order.learner, index)
    load = loader_of(order.view, seen.device).training
    local = local_training(order)

    def data(own: Mapping[Any, list[str]]) -> LocalClientData:
        return LocalClientData(index.learned(own["train"]), index.learned(own["val"]), seen, load, local, advance)

    clients = {client: data(dict(own)) for client, own in manifest.items()}
    scored = {client: one for client, one in clients.items() if one.val}
    if not pooled:
        return Learners(initial, {client: one for client, one in clients.items() if one.train}, scored)
    together = [identity for own in manifest.values() for identity in own["train"]]
    return Learners(initial, {POOLED: data({"train": together, "val": []})}, scored)
