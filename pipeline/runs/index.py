"""Reading data/encoded/<setting>/<run>.json: what a run's learner reads of its examples, by the store's keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.clients.manifest import Manifest
from pipeline.corpora.example import Split
from pipeline.model.entry import Entry
from pipeline.plan.orders import Training, TrainOrder, planned_run, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class Index:
    """A run's examples in the store.

    Attributes:
        digest: of the backbone's weights.
        encoding: of the code that encodes.
        classes: the classes of the task, in the order of the logits.
        entries: example -> the entries of its windows; the first is trained on. One without a target has 0 tokens.
        content: the file's content, for hashes and statistics.
    """

    digest: str
    encoding: str
    classes: tuple[str, ...]
    entries: Mapping[str, Sequence[Entry]]
    content: Json

    def learned(self, ids: Iterable[str]) -> list[Entry]:
        """The first entry of each example that has a target."""
        return [self.entries[identity][0] for identity in ids if self.entries[identity][0].tokens]


def read_index(setting: str, run: str) -> Index:
    """Read a run's index.

    Raises:
        QuorumError: the setting is not encoded.
    """
    return index_of(read_json(layout.encoded(setting, run), remedy=f"run `dvc repro encode@{setting}`"))


def index_of(content: Json) -> Index:
    """Build an index from the content of its file."""
    entries: dict[str, list[Entry]] = {}
    for identity, windows in content["entries"].items():
        for number, (key, tokens, source_tokens, *ids) in enumerate(windows):
            name = f"{identity}#{number}" if number else identity
            entry = Entry(name, key, tokens, source_tokens, *map(tuple, ids))
            entries.setdefault(identity, []).append(entry)
    return Index(content["digest"], content["encoding"], tuple(content["classes"]), entries, content)


def read_manifest(setting: str, seed: int) -> Manifest:
    """Read which client has which examples.

    Raises:
        QuorumError: the setting is not partitioned.
    """
    found: Manifest = read_json(layout.partition(setting, seed), remedy=f"run `dvc repro partition@{setting}`")[
        "manifest"
    ]
    return found


def tests_of(manifest: Manifest, index: Index) -> list[tuple[str, Entry]]:
    """(Client, first entry) of each test example."""
    return [(client, index.entries[i][0]) for client, own in manifest.items() for i in own["test"]]


def training_key(training: Training, manifest: Manifest, index: Index) -> str:
    """Hash a training's order and data. Two runs with one key are one training under two names."""
    splits: tuple[Split, ...] = ("train", "val")
    used = {client: {split: own[split] for split in splits} for client, own in manifest.items()}
    ids = sorted({i for own in used.values() for split in splits for i in own[split]})
    entries = [[i, [[entry.key, entry.tokens] for entry in index.entries[i][:1]]] for i in ids]
    return sha256_json([training.model_dump(mode="json"), used, entries, index.classes, index.digest])


def planned_key(run_id: str) -> str | None:
    """Compute the key of a run's planned training; None for a run that trains nothing.

    Raises:
        QuorumError: its order, partition or index is missing.
    """
    row = planned_run(run_id)
    order = read_order(layout.order("train", row.name), TrainOrder)
    training = order.at(row.seed)
    if training is None or order.left_out:
        return None
    return training_key(training, read_manifest(order.setting, row.seed), read_index(order.setting, row.name))


def is_as_planned(run_id: str) -> bool:
    """Whether a run's models are those of its planned training."""
    note = layout.trained_as(run_id)
    return note.is_file() and read_json(note)["training"] == planned_key(run_id)
