"""One self-contained HTML page: a template, the style that all pages share, figures within."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

MAIN_COMMAND, REPORT_COMMAND = "dvc repro main", "dvc repro report"
STYLE = Path(__file__).parent / "templates" / "page.css"


def page(template: Path, **content: Any) -> str:
    """The page; what the template names must be given."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    style = Markup(STYLE.read_text(encoding="utf-8"))
    return environment.from_string(template.read_text(encoding="utf-8")).render(style=style, **content)


def embedded(path: Path, caption: str) -> Markup:
    """An SVG file as part of the page, with its caption."""
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return Markup(
        '<figure><img alt="{}" src="data:image/svg+xml;base64,{}"><figcaption>{}</figcaption></figure>'
    ).format(caption, content, caption)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A small table: `head`, and rows of as many cells, of which the first names the row."""
    return Markup('<div class="scroll"><table><thead>{}</thead><tbody>{}</tbody></table></div>').format(
        _row("th", head), Markup("").join(_row("td", row) for row in rows)
    )


def _row(cell: str, texts: Sequence[str]) -> Markup:
    return Markup("<tr>{}</tr>").format(
        Markup("").join(Markup("<{0}>{1}</{0}>").format(Markup(cell), text) for text in texts)
    )
