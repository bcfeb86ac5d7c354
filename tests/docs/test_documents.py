"""Documents are what their templates give, and templates fail where a number has no source."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import QuorumError
from pipeline.report.documents import ROOT, grid, num, render, row, span, templates

ROWS = [{"run": "tau-2", "low": "-0.69"}, {"run": "tau-3", "low": "-0.56"}]


@pytest.mark.parametrize("template", templates(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_its_rendered_template(template: Path) -> None:
    assert template.with_suffix("").read_text(encoding="utf-8") == render(template), "run `make docs`"


def test_a_template_reads_tables_and_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("run,gain,low,high\none,-0.5,-1,0.25\n", encoding="utf-8")
    (tmp_path / "b.json").write_text('{"clients": 3}', encoding="utf-8")
    (tmp_path / "c.yaml").write_text("tau: 5.0", encoding="utf-8")
    template = tmp_path / "DOC.md.j2"
    template.write_text(
        '{% set gain = row(table("a.csv"), run="one") %}\n{{ gain.gain | signed(2) }} ({{ gain | span(2) }}), '
        '{{ record("b.json").clients }}, {{ record("c.yaml").tau | num(1) }}\n',
        encoding="utf-8",
    )
    assert render(template, tmp_path) == "−0.50 (−1.00 … 0.25), 3, 5.0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{ table("gone.csv") }}', r"DOC\.md\.j2: .*gone\.csv"),
        ("{{ gain }}", r"DOC\.md\.j2: 'gain' is undefined"),
        ('{{ row([{"run": "one"}], run="two") }}', r"DOC\.md\.j2: 0 rows have run=two"),
    ],
)
def test_what_has_no_source_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    template = tmp_path / "DOC.md.j2"
    template.write_text(text, encoding="utf-8")
    with pytest.raises(QuorumError, match=message):
        render(template, tmp_path)


def test_the_tree_shows_every_folder_of_the_package() -> None:
    page = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (ROOT / "pipeline").rglob("*") if path.suffix in {".py", ".j2"}}
    assert sorted(name for name in folders if f"{name}/" not in page) == []


def test_a_row_is_picked_by_all_of_its_keys() -> None:
    assert row(ROWS, run="tau-3") is ROWS[1]
    with pytest.raises(QuorumError, match="2 rows have"):
        row([*ROWS, ROWS[0]], run="tau-2", low="-0.69")


def test_numbers_have_a_sign_below_0_alone() -> None:
    """0.0004 of a hundred is 0.04%; -0.004 rounds to 0, which has no sign."""
    numbers = num("1234.5", 1), num(-0.5, 2), num(-0.004, 2), num(0.0004, 2, times=100)
    assert numbers == ("1,234.5", "−0.50", "0.00", "0.04")


def test_a_turned_interval_begins_with_its_lower_end_and_a_grid_is_a_markdown_table() -> None:
    assert span({"low": "-0.25", "high": "1"}, 2, times=-1) == "−1.00 … 0.25"
    assert grid(ROWS) == "| run | low |\n|---|---|\n| tau-2 | -0.69 |\n| tau-3 | -0.56 |"
