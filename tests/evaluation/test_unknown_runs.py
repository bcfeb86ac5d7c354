"""Runs of comparisons.yaml that params.yaml does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import Comparison, unknown_runs

PATH = Path("comparisons.yaml")


def against(run: str) -> list[Comparison]:
    terms = {"fedselectkd": 1.0, run: -1.0}
    return [Comparison(name="main", statement="", terms=terms, effects={"loss": None})]


def test_a_misspelt_run_is_refused_with_the_name_that_is_near() -> None:
    """Of the 23 letters of `fedavg-locl` and `fedavg-local` 22 agree: 0.96."""
    with pytest.raises(QuorumError, match=r"main\.terms\.fedavg-locl: no such run .* did you mean fedavg-local\?"):
        unknown_runs(PATH, against("fedavg-locl"), ["fedselectkd", "fedavg-local"])


@pytest.mark.parametrize("run", ["single", "fedselectkd-own"])
def test_a_run_that_a_plan_leaves_out_is_listed(run: str) -> None:
    """Of the 26 letters of `fedselectkd-own` and `fedselectkd` 22 agree: 0.85."""
    assert unknown_runs(PATH, against(run), ["fedselectkd"]) == [run]
    assert unknown_runs(PATH, against(run), ["fedselectkd", run]) == []
