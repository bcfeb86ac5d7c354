"""What pages for people tell, and the committed tables that it has to be read from."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path

from conftest import ROOT

REPORTS = ROOT / "reports"
FULL = ROOT / "experiments" / "full"
ABLATIONS = ROOT / "experiments" / "ablations"


def rows_of(page: Path, head: str) -> list[list[str]]:
    """The cells of the table under a heading row that begins with `head`."""
    lines = page.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def words(page: Path) -> str:
    """A page's text, its lines joined."""
    return " ".join(page.read_text(encoding="utf-8").split())


def prose(text: str) -> str:
    """Without tables, its lines joined."""
    return " ".join(" ".join(line for line in text.splitlines() if not line.startswith("|")).split())


def shown(row: dict[str, str], metric: str, digits: int) -> str:
    """Nothing where a run has no such score: it writes no summaries."""
    if not row[metric]:
        return ""
    value, low, high = (f"{float(row[name]):.{digits}f}" for name in (metric, f"{metric}_low", f"{metric}_high"))
    return f"{value} ({low} … {high})"


def difference(metric: str, against: str, reports: Path = REPORTS) -> dict[str, float]:
    """AdaFedSelectKD less another row of a table, mean over clients; of the laptop's, unless said."""
    for row in read(reports / "tables" / "significance.csv"):
        if (row["metric"], row["against"], row["client"]) == (metric, against, "mean"):
            return {name: float(row[name]) for name in ("difference", "low", "high", "visible", "p_holm") if row[name]}
    raise AssertionError(f"no difference to {against}")


def span(found: dict[str, float], digits: int, sign: int = 1, unit: str = "") -> str:
    ends = sorted(sign * found[end] for end in ("low", "high"))
    return f"{sign * found['difference']:.{digits}f}{unit} ({ends[0]:.{digits}f} … {ends[1]:.{digits}f})"


def untold(text: str, sentences: Iterable[str]) -> list[str]:
    """The numbers with a point of a text that stand in none of these sentences, each of which it has to hold.

    A sentence is written from committed files, so that a number outside of all is from nowhere.
    """
    for sentence in sentences:
        assert sentence
        assert sentence in text, sentence
        text = text.replace(sentence, " ")
    return re.findall(r"\d+\.\d+", text)
