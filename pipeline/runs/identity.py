"""What a run at one seed is, as one hash: by it the MLflow store knows whether results are those of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.orders import EncodeOrder, RunRow, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json


def identity_of(row: RunRow) -> str:
    """A run is its order and its data: what else it depends on is behind these two.

    Raises:
        QuorumError: its examples are not prepared or not encoded.
    """
    encoded = read_json(layout.encoded_index(row.id), remedy="run `dvc repro encode`")
    sources = {path.parent.name: read_json(path)["source"] for path in notes_behind(row)}
    return sha256_json([row.orders, encoded, sources])


def notes_behind(row: RunRow) -> list[Path]:
    """Where each corpus behind a run's group came from."""
    order = read_order(layout.order("encode", layout.group_of(row.id)), EncodeOrder)
    return [layout.notes(corpus) for corpus in order.corpora]


def record_identities(group: str, rows: Sequence[RunRow]) -> None:
    """Say beside a group's metrics what each run was when they were made."""
    write_json(layout.identities(group), {row.id: identity_of(row) for row in rows})


def recorded_identities(group: str) -> dict[str, str]:
    """Run id -> identity; empty where no metrics have been made."""
    return read_json(layout.identities(group)) if layout.identities(group).is_file() else {}
