"""What verdicts would be otherwise, as rows of a page and as records of a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pipeline.evaluation.claims import RUNS, SUPPORTED, Judged, by_place, judge
from pipeline.evaluation.intervals import of_few
from pipeline.evaluation.robustness import Runs, in_icsi_series_too, in_series, leave_one_out, without
from pipeline.report.claim_rows import digits_of
from pipeline.report.page import gain_text, signed
from pipeline.runs.results import Results

SAMPLES = 2_000
"""Random signs where each meeting is left out in turn: few, since there are hundreds of meetings to leave out."""
DECIDED = (*SUPPORTED, "excluded")

COLUMNS = {
    "claim": "claim",
    "endpoint": "endpoint",
    "word": "verdict",
    "untouched_runs": "B and C alone",
    "runs_as_sample": "runs as the sample",
    "series_as_clusters": "AMI series as one",
    "icsi_series_too": "ICSI series, too",
    "without_meetings_tuned_on": "without meetings tuned on",
    "leave_one_meeting_out": "each meeting left out",
}
"""What a row has -> the head of its column."""

Change = Callable[[Runs], Runs]
Judge = Callable[[Change], Sequence[Judged]]
"""How all scores, pooled and of each run, are changed -> the same claims, judged on them."""


def robustness_of(
    judged: Sequence[Judged], known: Results, tuned_on: Collection[str], seen: Collection[str], samples: int
) -> list[dict[str, Any]]:
    """`robustness_rows` of claims that were judged on all runs.

    Args:
        samples: random signs of meetings behind a claim's interval and p.
    """
    claims = list({one.claim.number: one.claim for one in judged}.values())

    def again(change: Change) -> Sequence[Judged]:
        alone = {seed: change(own) for seed, own in known.scored_by_seed.items()}
        return judge(claims, change(known.scored), alone, known.converged, samples)

    return robustness_rows(judged, known.scored, known.scored_by_seed, again, tuned_on, seen)


def robustness_rows(
    judged: Sequence[Judged],
    runs: Runs,
    by_seed: Mapping[int, Runs],
    again: Judge,
    tuned_on: Collection[str],
    seen: Collection[str],
) -> list[dict[str, Any]]:
    """A row a claim and endpoint that was run: its word, and what it would be otherwise.

    Args:
        tuned_on: meetings on whose losses rates and knobs were chosen.
        seen: the test meetings of run A, on which the first results of this project were seen; none if it is not kept.
    """
    series, icsi_too = by_place(again(in_series)), by_place(again(in_icsi_series_too))
    untuned = by_place(again(lambda of: without(of, tuned_on))) if tuned_on else {}
    untouched = by_place(again(lambda of: without(of, seen))) if seen and len(by_seed) > 1 else {}
    rows = []
    for place, one in by_place(judged).items():
        if one.gain is None:
            continue
        rows.append(
            {
                "claim": one.claim.number,
                "endpoint": one.metric,
                "word": one.word,
                "untouched_runs": _gain(untouched[place]) if place in untouched else "",
                "runs_as_sample": _over_runs(one),
                "series_as_clusters": series[place].word,
                "icsi_series_too": icsi_too[place].word,
                "without_meetings_tuned_on": untuned[place].word if place in untuned else "",
                "leave_one_meeting_out": _left_out(one, runs, by_seed),
            }
        )
    return rows


def _gain(one: Judged) -> str:
    if one.gain is None:
        return ""
    return gain_text(one.gain, digits_of(one))


def _over_runs(one: Judged) -> str:
    """Of a claim with all its runs: the interval that their spread alone gives."""
    return of_few(list(one.by_run.values())).span(digits_of(one), "+") if len(one.by_run) >= RUNS else ""


def _left_out(one: Judged, runs: Runs, by_seed: Mapping[int, Runs]) -> str:
    """Of a claim that is decided: how often its word stays, and between which gains."""
    found = leave_one_out(one, runs, by_seed, SAMPLES) if one.word in DECIDED else None
    if found is None:
        return ""
    digits, times = digits_of(one), sum(found.words.values())
    span = f"{signed(found.least, digits)} … {signed(found.largest, digits)}"
    return f"{found.words.get(one.word, 0)} of {times} times the same word; gain {span}"
