"""One self-contained HTML page: templates, the style that all pages share, tables, and figures within.

Prose is in `templates/`: a page's own, and `pieces.html.j2` with a macro for each piece and each figure's caption.
"""

from __future__ import annotations

import base64
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure

from pipeline.errors import QuorumError
from pipeline.evaluation.intervals import Interval
from pipeline.report.figures.style import save
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace import layout
from pipeline.workspace.record import Json
from pipeline.workspace.words import number

COMMAND = "dvc repro -s report"  # renders every page and its figures, and trains nothing
TEMPLATES = Path(__file__).parent / "templates"
WORDS = {"domain", "split", "run", "method", "setting", "data_set", "source", "frozen", "paper_data", "events"}
"""The columns of records that are text."""
TITLES = {"held_by_nobody": "unassigned"}
"""Column of a record -> its title, where that is not the column's name."""


@dataclass(frozen=True)
class Cell:
    """A table's cell: its text, the small print below it, and its CSS classes."""

    text: object
    small: str = ""
    kind: str = ""

    @classmethod
    def of(cls, value: object) -> Cell:
        """A cell as it is; anything else as the text of one."""
        return value if isinstance(value, Cell) else cls(value)


Rows = Sequence[Mapping[str, str]]  # rows of a CSV file
Cells = Sequence[object]  # a row of a table: cells, or the texts of some


@cache
def _environment() -> jinja2.Environment:
    loader, strict = jinja2.FileSystemLoader(TEMPLATES), jinja2.StrictUndefined
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=strict, trim_blocks=True)
    environment.filters.update(signed=signed, thousands="{:,}".format, cell=Cell.of)
    environment.globals.update(command=COMMAND, records=records)
    return environment


@dataclass(frozen=True)
class Drawing:
    """A figure, the name of its files, the macro of `pieces.html.j2` that is its caption, and the macro's arguments."""

    figure: Figure
    name: str
    caption: str
    about: Json = field(default_factory=dict)


def page(template: str, figures: Iterable[Drawing] = (), warnings: str = "", **content: Any) -> str:
    """Render a page; `content` is every name that the template uses.

    `figures`: are saved, and embedded where the template names their captions. `warnings`: HTML at the top.
    """
    placed: dict[str, Markup] = defaultdict(Markup)
    for one in figures:
        placed[one.caption] += place(one)
    style = Markup((TEMPLATES / "page.css").read_text(encoding="utf-8"))
    known = {"style": style, "figures": placed, "warnings": warnings}
    return _environment().get_template(template).render(known | content)


def place(one: Drawing | Markup) -> Markup:
    """Save a figure, and return the HTML that embeds it with its caption; HTML is returned as it is.

    Raises QuorumError if a section has the figure's name.
    """
    if isinstance(one, Markup):
        return one
    path = layout.FIGURES / f"{one.name}.svg"
    if path.exists():
        raise QuorumError(f"{layout.PARAMS}: sections.{one.name}: is the name of a figure; give the section another")
    save(one.figure, layout.FIGURES, one.name)
    return embedded(path, f"{piece(one.caption, **one.about).striptags()} To draw it again: {COMMAND}.")


def piece(name: str, **content: Any) -> Markup:
    """A piece of a page: the macro of that name in `pieces.html.j2`."""
    return Markup(getattr(_environment().get_template("pieces.html.j2").module, name)(**content))


def table(head: Cells, rows: Sequence[str | Cells], kind: str = "") -> Markup:
    """A table; a row that is one text is the heading of those below it. `kind`: its CSS class."""
    return piece("table", head=head, rows=rows, kind=kind)


def pivot(corner: str, cells: Mapping[tuple[str, str], object]) -> Markup:
    """A table of (row, column) -> cell, both in the order in which they first occur; a dash where there is none."""
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    return table([corner, *columns], [[row, *(cells.get((row, column), "–") for column in columns)] for row in rows])


def records(rows: Sequence[Json]) -> Markup:
    """A table of records, with the columns of the first that any has a value of; without records, a note."""

    def cell(name: str, text: object) -> Cell:
        return Cell(text, kind="left" if name in WORDS else "")

    if not rows:
        return piece("no_results")
    names = [name for name in rows[0] if any(row.get(name, "") != "" for row in rows)]
    head = [cell(name, TITLES.get(name, name.replace("_", " "))) for name in names]
    return table(head, [[cell(name, row.get(name, "")) for name in names] for row in rows])


def source_of(name: str, source: Json) -> str:
    """A data set's name and where it is from, as in `qmsum, mirror @ 83d7768`."""
    return f"{name}, {source['source']}" + (f" @ {source['commit']}" if source["commit"] else "")


def embedded(path: Path, caption: str) -> Markup:
    """An SVG file as part of the page, with its caption; it links to the file, which a narrow screen shows larger."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return piece("figure", caption=caption, content=content, file=os.path.relpath(path, layout.REPORT.parent))


def p_value(value: float) -> str:
    """As in `0.012`; below 0.001 as `<0.001`."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def gain_digits(metric: Metric) -> int:
    """Digits behind the point of a difference: one more than a loss has, since losses differ little."""
    return metric.digits + (metric.name == LOSS.name)


signed = partial(number, sign="+")  # as in `+0.51` or `−0.20`; a number that is shown as 0 has no sign


def gain_text(gain: Interval, digits: int) -> str:
    """As in `+0.51 (+0.16 … +0.85)`; a point without an interval as in `+0.51`."""
    value = signed(gain.value, digits)
    return value if gain.is_point else f"{value} ({gain.span(digits, '+')})"
