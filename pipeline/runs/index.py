"""What a run's learner reads of its examples, by the store's keys, and the key of the training on them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.clients.manifest import Manifest
from pipeline.model.entry import Entry
from pipeline.plan.learner import Training
from pipeline.plan.orders import TrainOrder, planned_run, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class Index:
    """A run's examples in the store: data/encoded/<setting>/<run>.json.

    Attributes:
        digest: of the backbone's weights.
        encoding: of the code that encodes.
        classes: the classes of the task, in the order of the logits.
        entries: example -> the entries of its windows; the first is trained on. One without a target has 0 tokens.
        read: example -> the tokens of its transcript, and how many of them the backbone reads.
    """

    digest: str
    encoding: str
    classes: tuple[str, ...]
    entries: Mapping[str, Sequence[Entry]]
    read: Mapping[str, tuple[int, int]]

    def learned(self, ids: Iterable[str]) -> list[Entry]:
        """The first entry of each example that has a target."""
        return [self.entries[identity][0] for identity in ids if self.entries[identity][0].tokens]


def read_index(setting: str, run: str) -> Index:
    """Read a run's index. Raises QuorumError if the setting is not encoded."""
    return index_of(read_json(layout.encoded(setting, run), remedy=f"run `dvc repro encode@{setting}`"))


def index_of(content: Json) -> Index:
    """Build an index from the content of its file."""
    entries = {
        identity: [
            Entry(f"{identity}#{number}" if number else identity, key, tokens, source_tokens, *map(tuple, ids))
            for number, (key, tokens, source_tokens, *ids) in enumerate(windows)
        ]
        for identity, windows in content["entries"].items()
    }
    return Index(content["digest"], content["encoding"], tuple(content["classes"]), entries, content["read"])


def read_manifest(setting: str, seed: int) -> Manifest:
    """Read which client has which examples. Raises QuorumError if the setting is not partitioned."""
    manifest: Manifest = read_json(layout.partition(setting, seed), f"run `dvc repro partition@{setting}`")["manifest"]
    return manifest


def training_key(training: Training, manifest: Manifest, index: Index) -> str:
    """Hash a training's order and data. Two runs with one key are one training under two names."""
    used = {client: {"train": own["train"], "val": own["val"]} for client, own in manifest.items()}
    ids = sorted({i for own in used.values() for split in own.values() for i in split})
    entries = [[i, [[entry.key, entry.tokens] for entry in index.entries[i][:1]]] for i in ids]
    return sha256_json([training.model_dump(mode="json"), used, entries, index.classes, index.digest])


def planned_key(run_id: str) -> str | None:
    """The key of a run's planned training; None if it trains nothing. Raises QuorumError if a file of it is missing."""
    row = planned_run(run_id)
    order = read_order(layout.order("train", row.name), TrainOrder)
    training = order.at(row.seed)
    if training is None or order.left_out:
        return None
    return training_key(training, read_manifest(order.setting, row.seed), read_index(order.setting, row.name))


def trained_key(run_id: str) -> str | None:
    """Read the key of the training of a run's models; None if it has none."""
    note = layout.trained_as(run_id)
    known: Json = read_json(note) if note.is_file() else {}
    return known.get("training")


def timed_training(run_id: str) -> Json:
    """Read the seconds of a run's training, in total and for each client's rounds.

    Empty if it trained nothing, or if the file is of another training, for example of a copy of the workspace.
    """
    timing = layout.timing("train", run_id)
    timed: Json = read_json(timing) if timing.is_file() else {}
    return timed if timed.get("rounds") and timed["training"] == trained_key(run_id) else {}
