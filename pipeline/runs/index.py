"""Reading data/encoded/<run>.json: a run's clients, and the entries of their examples in the prefix store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.corpora.example import SPLITS, Split
from pipeline.model.entry import Entry
from pipeline.plan.orders import EncodeOrder, Training, TrainOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json


@dataclass(frozen=True)
class Encoded:
    """A run's data: the entries of its clients' examples, and `index`, the file's content for hashes and statistics."""

    clients: dict[str, dict[Split, list[Entry]]]
    index: dict[str, Any]

    @property
    def limits(self) -> tuple[int, int]:
        """(source tokens, target tokens) to which its examples were cut."""
        source, target = self.index["limits"]
        return source, target

    @property
    def tests(self) -> list[tuple[str, Entry]]:
        """(client, entry) of every test example."""
        return [(client, entry) for client, splits in self.clients.items() for entry in splits["test"]]


def read_encoded(run_id: str) -> Encoded:
    """Read a run's index.

    Raises:
        QuorumError: the run is not encoded.
    """
    index = read_json(layout.encoded_index(run_id))
    clients: dict[str, dict[Split, list[Entry]]] = {
        client: {split: [_entry(e) for e in splits[split]] for split in SPLITS}
        for client, splits in index["clients"].items()
    }
    return Encoded(clients, index)


def _entry(row: dict[str, Any]) -> Entry:
    ids = (tuple(row.get("source", ())), tuple(row.get("target", ())))
    return Entry(row["id"], row["key"], row["tokens"], row["source_tokens"], *ids)


def training_key(training: Training, encoded: Encoded) -> str:
    """Hash a training's order and data. Two runs with one key are one training under two names."""
    return sha256_json([training.model_dump(mode="json"), encoded.index])


def planned_key(run_id: str) -> str | None:
    """Compute the key of a run's planned training; None for the untrained backbone.

    Raises:
        QuorumError: its order or index is missing.
    """
    order = read_order(layout.order("train", run_id), TrainOrder)
    return None if order.training is None else training_key(order.training, read_encoded(run_id))


def is_as_planned(run_id: str) -> bool:
    """Whether a run's adapters are those of its planned training."""
    note = layout.trained_as(run_id)
    return note.is_file() and read_json(note)["training"] == planned_key(run_id)


def target_limit(run_id: str) -> int:
    """Return how many tokens of a reference a run reads, its end token included."""
    order = read_order(layout.order("encode", layout.group_of(run_id)), EncodeOrder)
    return order.limits[order.manifests[run_id]][1]
