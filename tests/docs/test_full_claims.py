"""The committed verdicts on all of QMSum are what the kept results say, by the rules as they are now."""

from __future__ import annotations

import json
from typing import Any

import pytest
from told import FULL

from pipeline.evaluation.claims import judge, of_other_runs
from pipeline.plan.orders import RunRow
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import read_params
from pipeline.report.claim_rows import claim_record
from pipeline.report.paper import read_paper
from pipeline.runs.kept import rounds_of
from pipeline.runs.results import Results, scores_of
from pipeline.workspace import layout


@pytest.fixture(scope="module")
def planned() -> dict[str, Any]:
    found: dict[str, Any] = resolve(read_params(FULL / "params.yaml"))["report.json"]
    return found


@pytest.fixture(scope="module")
def known(planned: dict[str, Any]) -> Results:
    rows = [row for row in map(RunRow.model_validate, planned["runs"]) if (FULL / layout.kept(row.id)).is_file()]
    kept = {row.id: json.loads((FULL / layout.kept(row.id)).read_text(encoding="utf-8")) for row in rows}
    scores = {run: own["scores"] for run, own in kept.items()}
    return scores_of(rows, scores, {row.id: rounds_of(kept[row.id], row.seed) for row in rows})


@pytest.mark.parametrize("about", ["claims", "converging"])
def test_the_committed_verdicts_are_those_of_the_kept_results(
    planned: dict[str, Any], known: Results, about: str
) -> None:
    claims = list(read_paper().claims)
    if about == "converging":
        claims = of_other_runs(claims, known.at_converging_rates())
    found = judge(claims, known.scored, known.scored_by_seed, known.converged, planned["sign_flips"])
    committed = json.loads((FULL / layout.CLAIMS).read_text(encoding="utf-8"))[about]
    assert json.loads(json.dumps([claim_record(one) for one in found])) == committed
