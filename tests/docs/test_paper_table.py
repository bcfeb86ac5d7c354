"""The table of docs/paper.md is that of the committed runs of `make repro-all`."""

from __future__ import annotations

import pytest
import yaml
from conftest import ROOT
from told import rows_of
from told_of_runs import Studies

PAGE, PAPER = ROOT / "docs" / "paper.md", Studies(ROOT)
STUDIES = ("tau", "algorithms", "iid", "noniid", "extreme", "addition", "long", "sampling", "hard", "readings")


def test_the_table_is_that_of_the_committed_runs() -> None:
    paper = yaml.safe_load((ROOT / "pipeline" / "report" / "paper.yaml").read_text(encoding="utf-8"))
    sources = {one["study"]: one["source"] for one in paper["sections"]}
    assert rows_of(PAGE, "part") == PAPER.table({study: sources[study] for study in STUDIES})


@pytest.mark.parametrize("study", STUDIES)
def test_every_run_of_a_study_was_made(study: str) -> None:
    assert set(PAPER.runs_of(study)) <= set(PAPER.kept)
