"""Tables as CSV: what is written is read, and no spreadsheet takes a text for a formula."""

from pathlib import Path

import pytest

from pipeline.workspace.tables import read_table, write_table


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=2+5", "'=2+5"),
        ("+1 … +2", "'+1 … +2"),
        ("\r=2", '"\'\r=2"'),
        ("'=2", "''=2"),
        ("+1.5e-3", "+1.5e-3"),
        (-0.03, "-0.03"),
        (None, ""),
        ('a, "b"\r\n=c', '"a, ""b""\r\n=c"'),
    ],
)
def test_a_text_that_begins_as_a_formula_has_an_apostrophe_in_the_file_alone(
    value: str | float | None, cell: str, tmp_path: Path
) -> None:
    write_table(tmp_path / "t.csv", [{"one": value, "=two": 1}])
    assert (tmp_path / "t.csv").read_bytes().decode() == f"one,'=two\n{cell},1\n"
    assert read_table(tmp_path / "t.csv") == [{"one": "" if value is None else str(value), "=two": "1"}]
