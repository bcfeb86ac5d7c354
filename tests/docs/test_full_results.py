"""The committed tables and verdicts on all of QMSum are what the kept results say, by the rules as they are now."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from told import FULL, read

from pipeline.evaluation.claims import Claim, judge, of_other_runs, rivals
from pipeline.plan.orders import ReportOrder
from pipeline.plan.resolve import resolve
from pipeline.plan.schema import read_params
from pipeline.report.claim_rows import claim_record
from pipeline.report.differences import differences
from pipeline.report.main_data import MainData
from pipeline.report.main_tables import history_rows, main_table
from pipeline.report.paper import read_paper
from pipeline.report.robustness_rows import robustness_of
from pipeline.runs.kept import rounds_of
from pipeline.runs.metrics import small_metrics
from pipeline.runs.results import Results, results_of, scores_of
from pipeline.runs.whole_seeds import of_whole_seeds
from pipeline.tasks.task import LOSS, load_task
from pipeline.workspace import layout
from pipeline.workspace.tables import write_table

OURS, ENDPOINTS = "fedselectkd", ("average", "loss")
SERIES = "ES2006 ES2009 IS1006 TS3009 TS3010"
TUNED_ON = {
    *(f"{series}{meeting}" for series in SERIES.split() for meeting in "abcd"),
    *["Bed002", "Bed010", "Bed015", "Bmr005", "Bmr012", "Bmr026", "Bro005", "Bro011", "Bro022"],
    *["covid_2", "covid_6", "education_0", "education_10", "education_18", "education_22"],
}
"""QMSum's validation meetings, on whose losses rates were chosen."""


@pytest.fixture(scope="module")
def planned() -> ReportOrder:
    return ReportOrder.model_validate(resolve(read_params(FULL / "params.yaml"))["report.json"])


@pytest.fixture(scope="module")
def records(planned: ReportOrder) -> dict[str, Any]:
    """Planned run -> what is kept of it."""
    paths = {row.id: FULL / layout.kept(row.id) for row in planned.runs}
    return {run: json.loads(path.read_text(encoding="utf-8")) for run, path in paths.items() if path.is_file()}


@pytest.fixture(scope="module")
def known(planned: ReportOrder, records: dict[str, Any]) -> Results:
    """All kept runs, on which claims are judged."""
    rows = [row for row in planned.runs if row.id in records]
    scores = {run: own["scores"] for run, own in records.items()}
    return scores_of(rows, scores, {row.id: rounds_of(records[row.id], row.seed) for row in rows})


@pytest.fixture(scope="module")
def tabled(planned: ReportOrder, records: dict[str, Any]) -> Results:
    """Those that share a table, with figures."""
    rows = of_whole_seeds([row for row in planned.runs if row.id in records], planned.runs)
    scores = {run: own["scores"] for run, own in records.items()}
    rounds = {row.id: rounds_of(records[row.id], row.seed) for row in rows}
    return results_of(rows, scores, rounds, planned.sign_flips, "kept results")


def _claims(known: Results, about: str) -> list[Claim]:
    claims = list(read_paper().claims)
    return claims if about == "claims" else of_other_runs(claims, known.at_converging_rates())


def _is_committed(name: str, made: Path) -> bool:
    return made.read_bytes() == (FULL / "reports" / "tables" / name).read_bytes()


@pytest.mark.parametrize("about", ["claims", "converging"])
def test_the_committed_verdicts_are_those_of_the_kept_results(planned: ReportOrder, known: Results, about: str) -> None:
    found = judge(_claims(known, about), known.scored, known.scored_by_seed, known.converged, planned.sign_flips)
    committed = json.loads((FULL / layout.CLAIMS).read_text(encoding="utf-8"))[about]
    assert json.loads(json.dumps([claim_record(one) for one in found])) == committed


@pytest.mark.parametrize("about", ["claims", "converging"])
def test_the_committed_checks_of_the_verdicts_are_those_of_the_kept_results(
    planned: ReportOrder, known: Results, about: str
) -> None:
    assert len(TUNED_ON) == 35
    judged = judge(_claims(known, about), known.scored, known.scored_by_seed, known.converged, planned.sign_flips)
    seen = {row.meeting for own in known.scored_by_seed[min(known.scored_by_seed)].values() for row in own}
    found = robustness_of(judged, known, TUNED_ON, seen, planned.sign_flips)
    committed = [row for row in read(FULL / "reports" / "tables" / "robustness.csv") if row["of"] == about]
    assert [{"of": about} | {name: str(value) for name, value in one.items()} for one in found] == committed


def test_the_committed_main_table_is_that_of_the_kept_results(
    planned: ReportOrder, tabled: Results, tmp_path: Path
) -> None:
    told = SimpleNamespace(order=planned, results=tabled, metrics=(*load_task(planned.task).metrics, LOSS))
    write_table(tmp_path / "main.csv", main_table(cast(MainData, told)))
    assert _is_committed("main.csv", tmp_path / "main.csv")


def test_the_committed_metrics_are_those_of_the_kept_results(tabled: Results) -> None:
    committed = json.loads((FULL / layout.METRICS).read_text(encoding="utf-8"))
    assert json.loads(json.dumps(small_metrics(tabled.metrics, ENDPOINTS))) == committed


def test_the_committed_differences_are_those_of_the_kept_results(
    planned: ReportOrder, tabled: Results, tmp_path: Path
) -> None:
    found = differences(tabled, OURS, rivals(read_paper().claims, OURS), ENDPOINTS, planned.sign_flips)
    write_table(tmp_path / "significance.csv", [one.to_row() for one in found])
    assert _is_committed("significance.csv", tmp_path / "significance.csv")


def test_the_committed_rounds_are_those_of_the_kept_results(known: Results, tmp_path: Path) -> None:
    write_table(tmp_path / "history.csv", *history_rows(known.histories))
    assert _is_committed("history.csv", tmp_path / "history.csv")
