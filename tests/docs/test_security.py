"""Behind the sentences of SECURITY.md stand tests that exist."""

import re

from conftest import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    known = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert len(named) > 10
    assert [name for name in named if f"def {name}(" not in known] == []


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"tests/[\w/]+\.py", PAGE)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
