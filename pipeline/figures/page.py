"""One self-contained HTML page: a template, the style that all pages share, figures within."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

REPORT_COMMAND = "dvc repro report"
STYLE = Path(__file__).with_name("page.css")


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
