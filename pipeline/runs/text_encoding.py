"""Texts into the prefix store, for every model of an experiment that reads them; and the index of their entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pipeline.clients.taking import taken
from pipeline.corpora.texts import Text
from pipeline.errors import QuorumError
from pipeline.model.backbone import Limits, Rendered
from pipeline.model.encoder import Cut, Encoder, Lower
from pipeline.model.encoder_loading import load_encoder
from pipeline.model.entry import Entry
from pipeline.model.loading import backbone_digest, choose_device, load_backbone
from pipeline.model.precision import Precision
from pipeline.model.presets import PRESETS
from pipeline.model.store import PrefixStore, text_key
from pipeline.plan.text_orders import EncodeTextsOrder, View, name_of
from pipeline.tasks.encoded import EncoderTask, load_text_task, stored
from pipeline.tasks.title import Title
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import progress, say


@dataclass(frozen=True)
class Indexed:
    """A data set's index: its classes, and of each text the entries of its windows, the first one that is learned from.

    `entries`: text -> entries, each with its number of items, which is 0 of a window that nothing can be learned from.
    """

    classes: tuple[str, ...]
    entries: Mapping[str, Sequence[Entry]]
    digest: str

    def learned(self, ids: Sequence[str]) -> list[Entry]:
        """The entries of texts from which something can be learned."""
        return [self.entries[identity][0] for identity in ids if self.entries[identity][0].tokens]


def read_index(dataset: str, view: View) -> Indexed:
    """
    Raises:
        QuorumError: the data set is not encoded, or not for this model.
    """
    path = layout.encoded_texts(dataset)
    return index_of(read_json(path), view, f"{path}: has no {name_of(view)}; run `dvc repro encode@{dataset}`")


def index_of(content: Mapping[str, Any], view: View, missing: str) -> Indexed:
    """One view's part of what `encode_texts` gives.

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
    """The encoder that a view sees through."""
    folder = layout.backbone_of(view.backbone)
    return load_encoder(folder, Cut.parse(view.frozen), choose_device(device), precision, view.layers)


def writer_of(view: View, device: str, precision: Precision) -> Any:
    """The language model that a view sees through."""
    layers = PRESETS[view.backbone].adapted_layers
    return load_backbone(layout.backbone_of(view.backbone), layers, choose_device(device), precision)


def encode_texts(order: EncodeTextsOrder, dataset: str, texts: Mapping[str, Text]) -> dict[str, Any]:
    """Fill the store with what every view lacks of the texts that are used at any seed; the index of all."""
    task = load_text_task(order.task)
    classes = () if isinstance(task, Title) else task.classes([t for t in texts.values() if t.split == "train"])
    views: dict[str, dict[str, Any]] = {}
    lower: dict[str, Lower] = {}
    # From the lowest cut up: where the cut alone differs, a model goes on from what lies in the store below.
    for name, view in sorted(order.views.items(), key=lambda item: Cut.parse(item[1].frozen).layers):
        used = {i: text for seed in order.seeds[name] for i, text in taken(texts, order.take, seed).items()}
        uncut = name_of(view.model_copy(update={"frozen": "none"}))
        rendered, encode = _reader(task, view, order, classes, used, lower.get(uncut))
        views[name] = _stored(f"{dataset} {name}", rendered, encode, order, view)
        if layers := Cut.parse(view.frozen).layers:
            lower[uncut] = Lower(layers, _hidden_of(rendered, views[name]["entries"]))
    return {"classes": list(classes), "views": {name: views[name] for name in order.views}}


def _hidden_of(
    rendered: Mapping[str, Sequence[Rendered]], entries: Mapping[str, Sequence[tuple[str, int]]]
) -> Callable[[Rendered], Tensor | None]:
    """What looks up a window's hidden states in the store; None where they are not there, or not of every token."""
    store = PrefixStore(layout.store())
    keys = {one.source: key for text, own in rendered.items() for one, (key, _) in zip(own, entries[text], strict=True)}

    def hidden(one: Rendered) -> Tensor | None:
        if one.source not in keys:
            return None
        found: Tensor = store.training([keys[one.source]])[0]["hidden"]
        return found if len(found) == len(one.source) else None

    return hidden


Encode = Any


def _reader(
    task: EncoderTask | Title,
    view: View,
    order: EncodeTextsOrder,
    classes: Sequence[str],
    texts: Mapping[str, Text],
    lower: Lower | None,
) -> tuple[dict[str, list[Rendered]], Encode]:
    """What a view reads of each text, and what encodes it."""
    load = writer_of if isinstance(task, Title) else encoder_of
    model = load(view, order.device, order.precision)
    encode = _Writer(model) if isinstance(task, Title) else _Reader(model, task, lower)
    return {i: windows_of(text, task, model, view, classes) for i, text in texts.items()}, encode


def windows_of(text: Any, task: EncoderTask | Title, model: Any, view: View, classes: Sequence[str]) -> list[Rendered]:
    """What a model reads of a text, cut into tokens: as a rule one window, of a long paragraph several."""
    if isinstance(task, Title):
        return [task.render(model, task.example(text), Limits(view.tokens, view.target_tokens or 1))]
    return task.render(model, text, classes, view.tokens)


@dataclass(frozen=True)
class _Reader:
    """An encoder, for a task; `lower`: what it need not compute again."""

    encoder: Encoder
    task: EncoderTask
    lower: Lower | None

    @property
    def layers(self) -> list[Any]:
        return [str(self.encoder.cut), len(self.encoder.trained)]

    def __call__(self, rendered: Sequence[Rendered]) -> Iterator[Any]:
        for prefix in self.encoder.encode(rendered, self.lower):
            yield stored(self.encoder, self.task, prefix)


@dataclass(frozen=True)
class _Writer:
    """A language model, one text after the other."""

    backbone: Any

    @property
    def layers(self) -> list[Any]:
        return list(self.backbone.adapted_layers)

    def __call__(self, rendered: Sequence[Rendered]) -> Iterator[Any]:
        for one in rendered:
            yield self.backbone.encode(one, for_generation=False)[0]


def _stored(
    what: str, rendered: Mapping[str, Sequence[Rendered]], encode: Encode, order: EncodeTextsOrder, view: View
) -> dict[str, Any]:
    """A view's part of the index; what the store lacks is computed."""
    store = PrefixStore(layout.store())
    digest = backbone_digest(layout.backbone_of(view.backbone))
    known = {**order.model_dump(include={"encoding", "precision", "task"}), "layers": [*encode.layers, view.layers]}
    keys = {text: [text_key(digest, known, one) for one in own] for text, own in rendered.items()}
    wanted = {key: one for text, own in rendered.items() for key, one in zip(keys[text], own, strict=True)}
    missing = [key for key in wanted if not store.has(key)]
    say(f"encode {what}: {len(wanted)} texts, {len(wanted) - len(missing)} already in the store")
    if missing:
        with progress(f"encode {what}", len(missing)) as advance:
            for key, prefix in zip(missing, encode([wanted[key] for key in missing]), strict=True):
                store.put(key, prefix)
                advance(1)
    entries = {
        text: [[key, len(one.target)] for key, one in zip(keys[text], own, strict=True)]
        for text, own in rendered.items()
    }
    return {"digest": digest, "entries": entries}
