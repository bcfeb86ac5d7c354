"""Encoding a setting: stores what the frozen part of each backbone computes of its examples, and indexes it by run.

Of a model that writes, test examples are not stored here: `predict` computes them for decoding, and stores of the same
pass what a loss needs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pipeline.clients.manifest import Manifest
from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone, Limits, Prefix, Rendered
from pipeline.model.encoder import Encoder
from pipeline.model.store import PrefixStore, entry_key
from pipeline.plan.learner import Reader, View, name_of
from pipeline.plan.orders import EncodeOrder
from pipeline.runs.learners import digest_of, model_of
from pipeline.tasks.encoded import to_store
from pipeline.tasks.task import AnyTask, EncoderTask, load_task
from pipeline.workspace import layout
from pipeline.workspace.progress import progress, say
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class Reading:
    """A learner's model, and how it reads and stores examples."""

    model: Backbone | Encoder
    task: AnyTask
    view: View
    classes: tuple[str, ...]
    digest: str
    encoding: str

    def windows(self, example: Any) -> list[Rendered]:
        """Tokenize an example: usually one window, several for a long paragraph."""
        limits = Limits(self.view.source_tokens, self.view.target_tokens)
        return self.task.render(self.model, example, self.classes, limits)

    def key(self, window: Rendered) -> str:
        """The name of a window's entry in the store: a hash of everything that its tensors depend on."""
        layers: list[object] = []
        if isinstance(self.model, Encoder):
            layers = [str(self.model.frozen), len(self.model.trained), self.view.layers]
        else:
            layers = list(self.model.adapted_layers)
        known = {"encoding": self.encoding, "precision": self.model.precision, "layers": layers}
        return entry_key(self.digest, known, window)

    def encode(self, windows: Sequence[Rendered]) -> Iterator[Prefix]:
        """Yield what is stored of each window, in order."""
        if not isinstance(self.model, Encoder):
            yield from (self.model.encode(one, for_generation=False)[0] for one in windows)
            return
        task: EncoderTask = self.task  # type: ignore[assignment]  # an encoder's task
        yield from (to_store(self.model, task, prefix) for prefix in self.model.encode(windows))


def encode(
    name: str, order: EncodeOrder, examples: Json, manifests: Mapping[int, Manifest]
) -> tuple[dict[str, Json], int]:
    """Store what the runs' models lack: (run -> the content of its index, the number of windows that were computed).

    `examples`: all of the setting's data sets. `manifests`: seed -> which client has which examples.

    Raises QuorumError if a setting is longer than its backbone reads.
    """
    task, store = load_task(order.task), PrefixStore(layout.store())
    classes = tuple(order.classes) or task.classes([one for one in examples.values() if one.split == "train"])
    indices, computed = dict[str, Json](), 0
    for reader, runs in _alike(order):
        view, encoding, digest = reader.view, order.encoding[runs[0]], digest_of(reader.view.backbone)
        reading = Reading(model_of(reader), task, view, classes, digest, encoding)
        if not isinstance(reading.model, Encoder):
            _check_lengths(name, reading.model, view)
        seeds = sorted({seed for run in runs for seed in order.seeds[run]})
        splits = [own for seed in seeds for client in manifests[seed].values() for own in client.items()]
        windows = {
            identity: [(reading.key(one), one) for one in reading.windows(examples[identity])]
            for identity in dict.fromkeys(identity for _, ids in splits for identity in ids)
        }
        if not reader.uncached:
            stored = [ids for split, ids in splits if isinstance(reading.model, Encoder) or split != "test"]
            wanted = dict(window for identity in chain(*stored) for window in windows[identity])
            computed += _fill(f"{name} {name_of(view)}", reading, wanted, store)
        content: Json = {"digest": digest, "encoding": encoding, "classes": list(classes)}
        content["entries"] = {i: [_entry(*one, reader.uncached) for one in own] for i, own in windows.items()}
        content["read"] = {i: [one.transcript_tokens, one.transcript_read] for i, ((_, one), *_) in windows.items()}
        indices |= dict.fromkeys(runs, content)
    return indices, computed


def _check_lengths(name: str, backbone: Backbone, view: View) -> None:
    try:
        backbone.check_lengths(view.source_tokens, view.target_tokens)
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{name}: {error}, or remove the setting and its runs") from None


def _alike(order: EncodeOrder) -> list[tuple[Reader, list[str]]]:
    """Readers, and the runs that read examples alike."""
    found: dict[str, tuple[Reader, list[str]]] = {}
    for run, reader in order.readers.items():
        key = f"{reader.view.model_dump_json()} {reader.uncached}"
        found.setdefault(key, (reader, []))[1].append(run)
    return list(found.values())


def _fill(what: str, reading: Reading, wanted: Mapping[str, Rendered], store: PrefixStore) -> int:
    """Compute and store the windows' entries that the store lacks; returns how many."""
    missing = [key for key in wanted if not store.has(key)]
    say(f"encode {what}: {len(wanted)} examples, {len(wanted) - len(missing)} already in the store")
    if missing:
        with progress(f"encode {what}", len(missing)) as advance:
            for key, prefix in zip(missing, reading.encode([wanted[key] for key in missing]), strict=True):
                store.put(key, prefix)
                advance(1)
    return len(missing)


def _entry(key: str, window: Rendered, with_ids: bool) -> list[object]:
    """A window in the index: its key, its tokens of target and source, and, for a run without the store, their ids."""
    return [key, len(window.target), len(window.source), *([window.source, window.target] if with_ids else [])]
