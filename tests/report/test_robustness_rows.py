"""Verdicts beside what they would be otherwise, as rows of a page."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.evaluation.claims import Claim, Judged, judge
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Scored
from pipeline.report.robustness_rows import COLUMNS, Change, robustness_rows

CLAIM = Claim(number=1, text="", ours="ours", theirs="theirs", effects={"average": 0.93})


def run_of(gains: Mapping[str, float]) -> list[Scored]:
    """A meeting a gain over 20 ROUGE, one example each."""
    return [Scored(f"e{name}", "A", name, 10, {"average": 20.0 + gain, "loss": 25.0}) for name, gain in gains.items()]


def test_a_verdict_stands_beside_what_it_would_be_otherwise() -> None:
    """Run A gains 1 on ten meetings, B and C gain 2 on ten each; of those of A the first was tuned on.

    Over all 50 / 30 is 1.67, and without one of A's 49 / 29 is 1.69, without one of the others 48 / 29 is 1.66.
    """
    seeds = [{f"{name}{n}": gain for n in range(10)} for name, gain in (("a", 1.0), ("b", 2.0), ("c", 2.0))]
    by_seed = {n: {"ours": run_of(own), "theirs": run_of(dict.fromkeys(own, 0.0))} for n, own in enumerate(seeds)}
    pooled = {name: [row for own in by_seed.values() for row in own[name]] for name in ("ours", "theirs")}

    def judged(change: Change) -> list[Judged]:
        return judge([CLAIM], change(pooled), {n: change(own) for n, own in by_seed.items()}, lambda run: True, 2000)

    (row,) = robustness_rows(judged(lambda of: of), pooled, by_seed, judged, {"a0"}, seeds[0])
    assert set(row) == set(COLUMNS)
    assert (row["claim"], row["endpoint"], row["word"]) == (1, "average", "supported")
    assert row["untouched_runs"] == "+2.00 (+2.00 … +2.00)"
    assert row["runs_as_sample"] == "+0.23 … +3.10", "5/3 and 4.303 times the standard error of 1, 2 and 2, 1/3"
    assert (row["series_as_clusters"], row["icsi_series_too"]) == ("supported", "supported")
    assert row["without_meetings_tuned_on"] == "supported"
    assert row["leave_one_meeting_out"] == "30 of 30 times the same word; gain +1.66 … +1.69"


def test_what_is_undecided_is_not_looked_at_meeting_by_meeting() -> None:
    run = {"ours": run_of({"m1": 1.0}), "theirs": run_of({"m1": 0.0})}
    one = Judged(CLAIM, "average", Interval(1.0, 0.0, 2.0, 0.5, 3), 0.5, "undecided")
    (row,) = robustness_rows([one], run, {1: run}, lambda change: [one], (), ())
    assert (row["leave_one_meeting_out"], row["untouched_runs"], row["without_meetings_tuned_on"]) == ("", "", "")
