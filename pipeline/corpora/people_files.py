"""Text and CSV files that people write: in any encoding, with errors that name the line."""

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from pipeline.corpora.encodings import UTF8, decode
from pipeline.errors import QuorumError
from pipeline.workspace.progress import say


def text_of(path: Path) -> str:
    """The text of a file; see `encodings`. An encoding other than UTF-8 is printed.

    Raises QuorumError if it cannot be read, or is no text.
    """
    try:
        found = decode(path.read_bytes())
    except OSError as error:
        raise QuorumError(f"{path}: could not be read ({error.strerror}); check what it is") from None
    if found is None:
        raise QuorumError(f"{path}: is no text in any known encoding; save it as UTF-8")
    text, encoding = found
    if encoding != UTF8:
        say(f"{path}: read as {encoding}; if words look wrong, save it as UTF-8")
    return text


def same_name(name: str) -> str:
    """A file's name in the form in which two spellings of one name are equal: composed, without blanks around it."""
    return unicodedata.normalize("NFC", name).strip()


def rows_of(path: Path, columns: Sequence[str], *, shorter: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """(The line on which a row begins, column -> cell) of every row that is not empty; cells may be of any length.

    Columns are separated by commas, semicolons (Excel in many languages) or tabs. Names of columns are read in lower
    case, without blanks around them.

    Args:
        columns: those that must be there.
        shorter: whether a row may have fewer cells than the header; the others are empty.

    Raises QuorumError if a column is missing or there twice, the file is no CSV, or a row has a wrong number of cells.
    """
    text = re.sub(r"\Asep=.$", "", text_of(path), flags=re.MULTILINE)  # of Excel; the line stays, and is empty
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=_delimiter(text, columns))
    header: list[str] | None = None
    wrong: list[str] = []
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
            break
        while cells and not cells[-1].strip() and (header is None or len(cells) > len(header)):
            cells.pop()  # Excel fills rows up to the widest one
        if not any(map(str.strip, cells)):
            continue
        if header is None:
            header = [name.strip().lower() for name in cells]
            check_columns(path, header, columns)
            if twice := [name for name, times in Counter(header).items() if name and times > 1]:
                raise QuorumError(f"{where}: has two columns {twice[0]!r}; remove or rename one")
        elif len(cells) > len(header) or (len(cells) < len(header) and not shorter):
            wrong.append(f"line {line}: {len(cells)} fields")
        else:
            yield line, dict(zip_longest(header, cells, fillvalue=""))
    if wrong:
        remedy = 'write "…" around a text that has a comma or a line\'s end'
        raise QuorumError(f"{path}: {', '.join(wrong)}, and the header has {len(header or ())}; {remedy}")


def _delimiter(text: str, columns: Iterable[str]) -> str:
    """What separates the header's columns: with which most of the needed ones are there, first a comma."""
    header = next(filter(str.strip, io.StringIO(text, newline="")), "").lower()
    rows = {delimiter: next(csv.reader([header], delimiter=delimiter), []) for delimiter in ",;\t"}
    return max(rows, key=lambda delimiter: len({*columns} & {*map(str.strip, rows[delimiter])}))


def check_columns(path: Path, found: Iterable[str], needed: Sequence[str]) -> None:
    """Check that a file has the columns. Raises QuorumError if a needed one is not among those found."""
    has = list(found)
    if missing := [column for column in needed if column not in has]:
        raise QuorumError(
            f"{path}: has no column {missing[0]!r}; it has {', '.join(map(repr, has))}, and needs {', '.join(needed)}, "
            "between commas or semicolons"
        )
