"""Tables as CSV files: a list of rows with the same columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import QuorumError
from pipeline.workspace.files import write_text


def write_table(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    """Write rows; the columns are the first row's unless given. None becomes an empty cell."""
    names = list(columns or (rows[0] if rows else ()))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(row.get(name)) for name in names} for row in rows)
    write_text(path, stream.getvalue())


def read_table(path: Path, remedy: str = "run `dvc repro`") -> list[dict[str, str]]:
    """Read rows as text.

    Raises:
        QuorumError: the file is missing.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; {remedy}") from None


def _cell(value: Any) -> Any:
    return "" if value is None else value
