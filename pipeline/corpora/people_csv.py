"""CSV files that people write: rows with the lines on which they begin, and errors that name the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from pipeline.errors import QuorumError


def rows_of(
    path: Path, text: str, columns: Sequence[str], *, shorter: bool = False
) -> Iterator[tuple[int, dict[str, str]]]:
    """(The line on which a row begins, column -> cell) of every row that is not empty.

    Args:
        text: the file's content; cells may be of any length.
        columns: those that must be there.
        shorter: whether a row may have fewer cells than the header; the others are empty.

    Raises:
        QuorumError: a column is missing, the file is no CSV, or a row has a wrong number of cells.
    """
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise QuorumError(
                f'{path}: line {line}: is no CSV ({error}); write "…" around a text, and "" for each " within'
            ) from None
        if header is None:
            header = cells
            check_columns(path, header, columns)
        elif len(cells) > len(header) or (len(cells) < len(header) and cells and not shorter):
            raise QuorumError(
                f'{path}: line {line}: {len(cells)} fields, and the header has {len(header)}; write "…" around a text '
                "that has a comma or a line's end"
            )
        elif cells:
            yield line, dict(zip_longest(header, cells, fillvalue=""))


def check_columns(path: Path, found: Iterable[str], needed: Sequence[str]) -> None:
    """
    Raises:
        QuorumError: a needed column is not among those found.
    """
    has = list(found)
    missing = [column for column in needed if column not in has]
    if missing:
        raise QuorumError(
            f"{path}: has no column {missing[0]!r}; it has {', '.join(map(repr, has))}, and needs {', '.join(needed)}, "
            "between commas"
        )
