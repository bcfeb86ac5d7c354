"""Tables as CSV files: a list of rows with the same columns.

A spreadsheet runs a cell such as `=2+5` as a formula. So a text that it would take for one gets an apostrophe in front,
which `read_table` removes.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.workspace.files import write_text
from pipeline.workspace.record import Json

_FORMULA = re.compile(r"'*+[=+\-@\t\r]")
_NUMBER = re.compile(r"'*+[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?")


def write_table(path: Path, rows: Sequence[Json], columns: Sequence[str] | None = None) -> None:
    """Write rows; the columns are the first row's unless given. None becomes an empty cell."""
    names = list(columns or (rows[0] if rows else ()))
    write_text(path, "".join([_line(names), *(_line(row.get(name) for name in names) for row in rows)]))


def read_table(path: Path, remedy: str = "run `dvc repro`") -> list[dict[str, str]]:
    """The rows of a table that `write_table` wrote, as text; an error where the file is missing."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream, restkey="", restval=""))
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; {remedy}") from None
    return [{_text(name): _text(cell) for name, cell in row.items() if name} for row in rows]


def _line(cells: Iterable[object]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerow([_cell(cell) for cell in cells])  # with another lineterminator it quotes no "\r"
    return stream.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: object) -> object:
    """A value as it is written; an apostrophe in front of a formula's apostrophes makes it one more."""
    if isinstance(value, str) and _is_formula(value):
        return f"'{value}"
    return "" if value is None else value


def _text(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    """Whether a text, without apostrophes in front, begins as a formula does and is no plain number."""
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
