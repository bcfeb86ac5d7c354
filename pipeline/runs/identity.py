"""The identity of a run at one seed, a hash: MLflow's runs have it, so that nothing is logged twice."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.plan.orders import RunRow
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.record import Json


def identity_of(row: RunRow, training: str | None) -> str:
    """Hash what a run is: its place, its name and seed, its knobs, and the key of its training, which has its data."""
    return sha256_json([layout.workspace().as_posix(), row.id, row.fingerprint, training])


def record_identities(rows: Mapping[str, RunRow], results: Mapping[str, Json]) -> None:
    """Write the identity of each run with the metrics; `rows`, `results`: by run id."""
    write_json(layout.identities(), {i: identity_of(rows[i], own["training"]) for i, own in results.items()})


def recorded_identities() -> dict[str, str]:
    """Read run id -> identity; empty where no metrics have been written."""
    return read_json(layout.identities()) if layout.identities().is_file() else {}
