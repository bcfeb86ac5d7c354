"""paper.yaml, typed: the paper's tables and figures, and our sections on them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

import yaml
from pydantic import Field

from pipeline.report.page import Cell, Rows, pivot
from pipeline.tasks.rouge import AVERAGED
from pipeline.workspace.record import Json, Record

PAPER = Path(__file__).with_name("paper.yaml")


class Section(Record):
    """One table or figure of the paper, or one section of params.yaml.

    Attributes:
        name: as params.yaml names the section that is its counterpart.
        says: the paper's words in short.
        tables: those of its tables in paper_results.csv.
        remark: what differs here, or where the paper contradicts itself.
    """

    name: str
    source: str
    title: str
    says: str = ""
    tables: tuple[str, ...] = Field(default=(), strict=False)
    remark: str = ""

    @property
    def heading(self) -> str:
        """Its source and its title."""
        return f"{self.source[0].upper()}{self.source[1:]}: {self.title}"


def read_paper() -> list[Section]:
    """The paper's tables and figures, in its order."""
    return [Section.model_validate(one) for one in yaml.safe_load(PAPER.read_text(encoding="utf-8"))["sections"]]


def sections_of(names: Iterable[str], *, paper: bool) -> list[Section]:
    """The paper's sections, where they are shown, and one for each of params.yaml's that is not among them."""
    sections, source = (read_paper(), "your section") if paper else ([], "section")
    known = {section.name for section in sections}
    return [*sections, *(Section(name=name, source=source, title=name) for name in names if name not in known)]


def average_of(row: Mapping[str, str]) -> float:
    """One row's average ROUGE: as printed, or the mean of R-1, R-2 and R-L."""
    return float(row["average"]) if row["average"] else fmean(float(row[m]) for m in AVERAGED)


def paper_table(paper: Rows, number: str) -> Json:
    """One of the paper's tables: average ROUGE and its parts, a row a method, a column a client."""
    rows = [row for row in paper if row["table"] == number]
    cells = {
        (row["method"], row["client"]): Cell(f"{average_of(row):.2f}", " / ".join(filter(None, map(row.get, AVERAGED))))
        for row in rows
    }
    parts = ", and R-1 / R-2 / R-L" if any(cell.small for cell in cells.values()) else ""
    return {"note": f"Table {number}: average ROUGE{parts}.", "table": pivot(rows[0]["backbone"], cells)}
