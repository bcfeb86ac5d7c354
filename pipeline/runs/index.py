"""Reading data/encoded/<run>.json: a run's clients, and the entries of their examples in the prefix store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.corpora.example import SPLITS, Split
from pipeline.model.entry import Entry
from pipeline.plan.orders import TrainSpec
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json


@dataclass(frozen=True)
class Encoded:
    """What a run's stages know of its data: `index` is the file's whole content, for hashing and statistics."""

    clients: dict[str, dict[Split, list[Entry]]]
    index: dict[str, Any]


def read_encoded(run_id: str) -> Encoded:
    index = read_json(layout.encoded_index(run_id))
    clients: dict[str, dict[Split, list[Entry]]] = {
        client: {split: [_entry(e) for e in splits[split]] for split in SPLITS}
        for client, splits in index["clients"].items()
    }
    return Encoded(clients, index)


def _entry(row: dict[str, Any]) -> Entry:
    ids = (tuple(row.get("source", ())), tuple(row.get("target", ())))
    return Entry(row["id"], row["key"], row["tokens"], row["source_tokens"], *ids)


def training_key(training: TrainSpec, encoded: Encoded) -> str:
    """The name of a training: its spec and its data. Two runs with one key are one training under two names."""
    return sha256_json([training.model_dump(mode="json"), encoded.index])
