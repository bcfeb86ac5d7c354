"""A rater's page: one file that works from disk, saves as it goes, and exports what was rated as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pipeline.report.page import page


def render(sheet: str, items: Sequence[Mapping[str, Any]], criteria: Sequence[str]) -> str:
    """`items` as `ratings.Item` without its key."""
    # Inside a script, the only text that could end it early is a tag's beginning.
    content = json.dumps({"sheet": sheet, "criteria": criteria, "items": items}, ensure_ascii=False)
    return page("rating_sheet.html.j2", sheet=sheet, count=len(items), content=Markup(content.replace("<", "\\u003c")))
