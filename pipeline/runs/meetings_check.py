"""`python -m pipeline meetings check FOLDER`: which meetings can be read, and what is wrong with the others."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipeline.corpora.organisation import check
from pipeline.errors import QuorumError

COLUMNS = ("file", "format", "turns", "speakers", "words", "queries", "wrong")


def check_folder(folder: str) -> None:
    """Print a table with one row for each file.

    Raises:
        QuorumError: a file cannot be read.
    """
    rows = [one.to_row() for one in check(Path(folder))]
    table = Table(*COLUMNS[:-1], "what is wrong, and where")
    for row in rows:
        table.add_row(*(str(row.get(name, "")) for name in COLUMNS))
    Console(markup=False, emoji=False).print(table)
    unread = [row["file"] for row in rows if "turns" not in row]
    print(
        f"{len(rows) - len(unread)} meetings can be read; {sum(int(row.get('queries', 0)) for row in rows)} summaries"
    )
    if unread:
        names = list(dict.fromkeys(unread))
        raise QuorumError(f"{folder}: {len(names)} files cannot be used: {', '.join(names)}; the table says why")
