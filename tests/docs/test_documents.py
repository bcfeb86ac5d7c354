"""Documents are what their templates give, and templates fail where a number has no source."""

from pathlib import Path

import pytest

from pipeline.errors import QuorumError
from pipeline.report.documents import ROOT, num, render, templates


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
        ('{{ row([{"run": "one"}] * 2, run="one") }}', "2 rows have run=one"),
    ],
)
def test_what_has_no_source_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    template = tmp_path / "DOC.md.j2"
    template.write_text(text, encoding="utf-8")
    with pytest.raises(QuorumError, match=message):
        render(template, tmp_path)


def test_numbers_have_a_sign_below_0_alone() -> None:
    """0.0004 of a hundred is 0.04%; -0.004 rounds to 0, which has no sign."""
    numbers = num("1234.5", 1), num(-0.5, 2), num(-0.004, 2), num(0.0004, 2, times=100)
    assert numbers == ("1,234.5", "−0.50", "0.00", "0.04")
