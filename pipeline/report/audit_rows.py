"""The audits of the claims as rows of a page, and as records of a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pipeline.evaluation.audits import Runs, in_series, leave_one_out, without
from pipeline.evaluation.claims import Judged
from pipeline.evaluation.scores import LOSS, MEAN
from pipeline.report.page import signed
from pipeline.runs.results import Metrics
from pipeline.tasks.task import Metric

SAMPLES = 2_000
"""Random signs where each meeting is left out in turn: one of a hundred, at which a page is still made in a minute."""
DECIDED = ("supported", "supported, smaller", "excluded")

TITLES = {
    "rounds": "Each client keeps the round whose validation summaries score best, not the one with the least loss",
    "beams": "Summaries by a beam search, not by greedy search",
    "fp32": "All products in fp32",
}
"""Audit of `runs.audits` -> what it changes."""

Change = Callable[[Runs], Runs]
Judge = Callable[[Change], Sequence[Judged]]
"""How all scores, pooled and of each run, are changed -> the claims, judged as they are elsewhere on the page."""


def audit_rows(judged: Sequence[Judged], runs: Runs, judge: Judge, tuned_on: Collection[str]) -> list[dict[str, Any]]:
    """A row a claim and endpoint that was run: its word, and what it would be otherwise.

    Args:
        tuned_on: meetings on whose losses rates and knobs were chosen.
    """
    series = _words(judge(in_series))
    untouched = _words(judge(lambda of: without(of, tuned_on))) if tuned_on else {}
    rows = []
    for one in (one for one in judged if one.gain is not None):
        place = (one.claim.number, one.metric)
        rows.append(
            {
                "claim": one.claim.number,
                "endpoint": one.metric,
                "word": one.word,
                "series_as_clusters": series[place],
                "without_meetings_tuned_on": untouched.get(place, ""),
                "leave_one_meeting_out": _left_out(one, runs),
            }
        )
    return rows


def other_tables(
    audits: Mapping[str, Sequence[Mapping[str, Any]]], table: Metrics, metric: Metric
) -> dict[str, list[list[str]]]:
    """What an audit changes -> a row a run, means over clients: as the table has it, as the audit has it, and rounds.

    Args:
        table: of the one seed that is audited.
        metric: by which runs are compared first.
    """
    found: dict[str, list[list[str]]] = {}
    for name, rows in audits.items():
        for row in (row for row in rows if row["client"] == MEAN and row["run"] in table):
            known = table[row["run"]][MEAN].metrics
            cells = [
                _both(known[one].value, row[one], digits) for one, digits in ((metric.name, metric.digits), (LOSS, 3))
            ]
            moved = [
                f"{own['client']} {own['by_loss']} → {own['by_rouge']}"
                for own in rows
                if own["run"] == row["run"] and own.get("by_rouge") != own.get("by_loss")
            ]
            found.setdefault(TITLES[name], []).append([row["run"], *cells, ", ".join(moved)])
    return found


def _both(known: float, other: float, digits: int) -> str:
    return f"{known:.{digits}f} → {other:.{digits}f}"


def _words(judged: Sequence[Judged]) -> Mapping[tuple[int, str], str]:
    return {(one.claim.number, one.metric): one.word for one in judged}


def _left_out(one: Judged, runs: Runs) -> str:
    """Of a claim that is decided: how often its word stays, and between which gains."""
    found = leave_one_out(one, runs, SAMPLES) if one.word in DECIDED else None
    if found is None:
        return ""
    digits, times = (3 if one.metric == LOSS else 2), sum(found.words.values())
    span = f"{signed(found.least, digits)} … {signed(found.largest, digits)}"
    return f"{found.words.get(one.word, 0)} of {times} times the same word; gain {span}"
