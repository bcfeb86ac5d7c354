"""The identity of a run at one seed, a hash: the MLflow store compares it to know whether results match the plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.orders import EncodeOrder, RunRow, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json


def identity_of(row: RunRow) -> str:
    """Hash a run's order and data, which everything else that it depends on enters.

    Raises:
        QuorumError: its examples are not prepared or not encoded.
    """
    encoded = read_json(layout.encoded_index(row.id), remedy="run `dvc repro encode`")
    sources = {path.parent.name: read_json(path)["source"] for path in notes_behind(row)}
    return sha256_json([row.orders, encoded, sources])


def notes_behind(row: RunRow) -> list[Path]:
    """Paths of the notes that say where each corpus of a run's group came from."""
    order = read_order(layout.order("encode", layout.group_of(row.id)), EncodeOrder)
    return [layout.notes(corpus) for corpus in order.corpora]


def record_identities(group: str, rows: Sequence[RunRow]) -> None:
    """Write the identity of each run with a group's metrics."""
    write_json(layout.identities(group), {row.id: identity_of(row) for row in rows})


def recorded_identities(group: str) -> dict[str, str]:
    """Read run id -> identity; empty where no metrics have been written."""
    return read_json(layout.identities(group)) if layout.identities(group).is_file() else {}
