"""The examples in the code's own words run, and give what they say."""

import doctest
import importlib

import pytest
from conftest import ROOT

PATHS = (path for path in (ROOT / "pipeline").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
MODULES = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PATHS)


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
