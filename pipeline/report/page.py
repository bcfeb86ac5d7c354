"""One self-contained HTML page: templates, the style that all pages share, figures within.

Prose lives in `templates/`: a page's own, and `pieces.html.j2` with a macro a piece and a caption a figure.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pipeline.errors import QuorumError
from pipeline.evaluation.intervals import Interval
from pipeline.report.figures.style import save
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace import layout
from pipeline.workspace.words import number

COMMAND = "dvc repro report"
"""Renders every page and its figures."""
TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["signed"] = signed
    environment.filters["thousands"] = "{:,}".format
    return environment


def page(template: str, **content: Any) -> str:
    """Render a page.

    Args:
        content: every name that the template uses.
    """
    style = Markup((TEMPLATES / "page.css").read_text(encoding="utf-8"))
    return _environment().get_template(template).render(style=style, **content)


def piece(name: str, **content: Any) -> Markup:
    """A piece of a page: the macro of that name in `pieces.html.j2`."""
    return Markup(getattr(_environment().get_template("pieces.html.j2").module, name)(**content))


def embedded(path: Path, caption: str) -> Markup:
    """An SVG file as part of the page, with its caption."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return piece("figure", caption=caption, content=content)


@dataclass(frozen=True)
class Canvas:
    """A folder of figures."""

    folder: Path

    def place(self, figure: Any, name: str, caption: str, **about: Any) -> Markup:
        """Save a figure, and return the HTML that embeds it with its caption.

        Args:
            caption: a macro of `pieces.html.j2`.
            about: the macro's arguments, without the command.

        Raises:
            QuorumError: a section has the figure's name.
        """
        if (self.folder / f"{name}.svg").exists():
            raise QuorumError(f"{layout.PARAMS}: sections.{name}: is the name of a figure; give the section another")
        save(figure, self.folder, name)
        return embedded(self.folder / f"{name}.svg", piece(caption, command=COMMAND, **about).striptags())


def p_value(value: float) -> str:
    """As in `0.012`; below 0.001 as `<0.001`."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def gain_digits(metric: Metric) -> int:
    """Digits behind the point of a difference: one more than a loss has, since losses differ little."""
    return metric.digits + (metric.name == LOSS.name)


signed = partial(number, sign="+")
"""As in `+0.51` or `−0.20`; a number that is shown as 0 has no sign."""


def gain_text(gain: Interval, digits: int) -> str:
    """As in `+0.51 (+0.16 … +0.85)`; a point without an interval as in `+0.51`."""
    value = signed(gain.value, digits)
    return value if gain.is_point else f"{value} ({gain.span(digits, '+')})"
