"""Text and CSV files that people write: in any encoding, with errors that name the line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from pipeline.errors import QuorumError


def text_of(path: Path) -> str:
    """A text file in any encoding: UTF-8, else the most likely one.

    Raises QuorumError if it cannot be read, or is no text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise QuorumError(f"{path}: could not be read ({error.strerror}); check what it is") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # UTF-16 without a byte order mark is UTF-8 with a NUL after every letter
        from charset_normalizer import from_bytes

        text = str(from_bytes(content).best() or "\0")
    if "\0" in text:
        raise QuorumError(f"{path}: is no text in any known encoding; save it as UTF-8")
    return text


def rows_of(path: Path, columns: Sequence[str], *, shorter: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """(The line on which a row begins, column -> cell) of every row that is not empty; cells may be of any length.

    Args:
        columns: those that must be there.
        shorter: whether a row may have fewer cells than the header; the others are empty.

    Raises QuorumError if a column is missing or there twice, the file is no CSV, or a row has a wrong number of cells.
    """
    text = text_of(path)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        where = f"{path}: line {line}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise QuorumError(
                f'{where}: is no CSV ({error}); write "…" around a text, and "" for each " within'
            ) from None
        if cells is None:
            return
        if header is None:
            header = cells
            check_columns(path, header, columns)
            if twice := [name for name, times in Counter(header).items() if name and times > 1]:
                raise QuorumError(f"{where}: has two columns {twice[0]!r}; remove or rename one")
        elif len(cells) > len(header) or (0 < len(cells) < len(header) and not shorter):
            raise QuorumError(
                f'{where}: {len(cells)} fields, and the header has {len(header)}; write "…" around a text that has a '
                "comma or a line's end"
            )
        elif cells:
            yield line, dict(zip_longest(header, cells, fillvalue=""))


def check_columns(path: Path, found: Iterable[str], needed: Sequence[str]) -> None:
    """Check that a file has the columns. Raises QuorumError if a needed one is not among those found."""
    has = list(found)
    if missing := [column for column in needed if column not in has]:
        raise QuorumError(
            f"{path}: has no column {missing[0]!r}; it has {', '.join(map(repr, has))}, and needs {', '.join(needed)}, "
            "between commas"
        )
