"""A rater's page, in a real browser where there is one."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.report.ratings.sheets import CRITERIA, render


def test_the_page_names_its_keys() -> None:
    page = render("abc", [], CRITERIA)
    assert all(f"<code>{key}</code>" in page for key in ("a", "b", "t", "←", "→"))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="left out: no Chromium to open the page in")
def test_the_page_is_rated_by_keys_and_keeps_what_was_rated(tmp_path: Path) -> None:
    """A, B, a tie that is taken back for A; then the next pair's first criterion, a tie."""
    items = [{"item": f"i{n}", "client": "A", "query": "q", "transcript": [], "a": "", "b": ""} for n in range(2)]
    keys = ["a", "b", "t", "Backspace", "1", "ArrowRight", "3"]
    rater = (
        f"<script>for (const key of {keys}) document.dispatchEvent(new KeyboardEvent('keydown', {{ key }}));"
        "document.title = localStorage.getItem(place) + $('count').textContent;</script></body>"
    )
    (tmp_path / "sheet.html").write_text(render("abc", items, CRITERIA).replace("</body>", rater), encoding="utf-8")
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    opened = [*browser, "--dump-dom", (tmp_path / "sheet.html").as_uri()]
    page = subprocess.run(opened, capture_output=True, text=True, timeout=120, check=True).stdout
    kept, _, done = html.unescape(page.split("<title>")[1].split("</title>")[0]).rpartition("}")
    first, second, third = CRITERIA
    assert json.loads(kept + "}")["answers"] == {"i0": {first: "A", second: "B", third: "A"}, "i1": {first: "tie"}}
    assert done == "1 done"
