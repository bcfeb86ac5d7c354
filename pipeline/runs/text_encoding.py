"""Encodes texts into the prefix store for every model of an experiment, and builds the index of their entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.clients.taking import taken
from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.model.encoder import Encoder, Lower
from pipeline.model.encoder_loading import load_encoder
from pipeline.model.entry import Entry
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.loading import backbone_digest, choose_device, load_backbone
from pipeline.model.precision import Precision
from pipeline.model.presets import PRESETS
from pipeline.model.store import PrefixStore, text_key
from pipeline.plan.text_orders import EncodeTextsOrder
from pipeline.plan.view import View, name_of
from pipeline.runs.text_reading import (
    EncoderReader,
    Reader,
    Windows,
    WriterReader,
    from_below,
    lower_of,
    uncut,
    windows_of,
)
from pipeline.tasks.task import AnyTask, load_task, writes
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import progress, say


@dataclass(frozen=True)
class Indexed:
    """A data set's index for one model: its classes, and the entries of each text's windows.

    `entries`: text -> entries. Training uses the first one. A window without a target has 0 items.
    """

    classes: tuple[str, ...]
    entries: Mapping[str, Sequence[Entry]]
    digest: str

    def learned(self, ids: Sequence[str]) -> list[Entry]:
        """Return the first entry of each text that has items to learn from."""
        return [self.entries[identity][0] for identity in ids if self.entries[identity][0].tokens]


def read_index(dataset: str, view: View) -> Indexed:
    """Read a data set's index for one model.

    Raises:
        QuorumError: the data set is not encoded, or not for this model.
    """
    path = layout.encoded_texts(dataset)
    return index_of(read_json(path), view, f"{path}: has no {name_of(view)}; run `dvc repro encode@{dataset}`")


def index_of(content: Mapping[str, Any], view: View, missing: str) -> Indexed:
    """Select one view from the result of `encode_texts`.

    Raises:
        QuorumError: the data set is not encoded for this model.
    """
    found = content["views"].get(name_of(view))
    if found is None:
        raise QuorumError(missing)
    entries = {
        text: [Entry(text if not number else f"{text}#{number}", key, items) for number, (key, items) in enumerate(own)]
        for text, own in found["entries"].items()
    }
    return Indexed(tuple(content["classes"]), entries, found["digest"])


def encoder_of(view: View, device: str, precision: Precision) -> Encoder:
    """Load a view's encoder."""
    folder = layout.backbone_of(view.backbone)
    return load_encoder(folder, FrozenPart.parse(view.frozen), choose_device(device), precision, view.layers)


def writer_of(view: View, device: str, precision: Precision) -> Any:
    """Load a view's language model."""
    layers = PRESETS[view.backbone].adapted_layers
    return load_backbone(layout.backbone_of(view.backbone), layers, choose_device(device), precision)


def encode_texts(order: EncodeTextsOrder, dataset: str, texts: Mapping[str, Example]) -> dict[str, Any]:
    """Store what every view lacks of the texts that any seed uses; returns the index of all views."""
    task, store = load_task(order.task), PrefixStore(layout.store())
    classes = task.classes([t for t in texts.values() if t.split == "train"])
    views: dict[str, dict[str, Any]] = {}
    lower: dict[str, Lower | None] = {}
    for name in from_below(order.views):
        view = order.views[name]
        uncut_name = name_of(uncut(view))
        model, reader = _reader(task, view, order, lower.get(uncut_name))
        used = {i: text for seed in order.seeds[name] for i, text in taken(texts, order.take, seed).items()}
        windows = {i: windows_of(text, task, model, view, classes) for i, text in used.items()}
        digest = backbone_digest(layout.backbone_of(view.backbone))
        known = {**order.model_dump(include={"encoding", "precision", "task"}), "layers": [*reader.layers, view.layers]}
        keys = {i: [text_key(digest, known, one) for one in own] for i, own in windows.items()}
        _fill(f"{dataset} {name}", windows, keys, reader, store)
        lower[uncut_name] = lower_of(view, windows, keys, lambda key: store.training([key])[0]["hidden"])
        views[name] = {
            "digest": digest,
            "entries": {i: [[k, len(one.target)] for k, one in zip(keys[i], windows[i], strict=True)] for i in windows},
        }
    return {"classes": list(classes), "views": {name: views[name] for name in order.views}}


def _reader(task: AnyTask, view: View, order: EncodeTextsOrder, lower: Lower | None) -> tuple[Any, Reader]:
    """A view's model, and the reader that computes its entries."""
    if writes(task):
        writer = writer_of(view, order.device, order.precision)
        return writer, WriterReader(writer)
    encoder = encoder_of(view, order.device, order.precision)
    return encoder, EncoderReader(encoder, task, lower)


def _fill(what: str, windows: Windows, keys: Mapping[str, Sequence[str]], read: Reader, store: PrefixStore) -> None:
    """Compute the windows' entries that the store lacks, and store them under `keys`."""
    wanted = {key: one for text, own in windows.items() for key, one in zip(keys[text], own, strict=True)}
    missing = [key for key in wanted if not store.has(key)]
    say(f"encode {what}: {len(wanted)} texts, {len(wanted) - len(missing)} already in the store")
    if missing:
        with progress(f"encode {what}", len(missing)) as advance:
            for key, prefix in zip(missing, read([wanted[key] for key in missing]), strict=True):
                store.put(key, prefix)
                advance(1)
