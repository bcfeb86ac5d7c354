"""Verdicts looked at in another way, on scores that are worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.evaluation.claims import Claim, Judged
from pipeline.evaluation.robustness import in_icsi_series_too, in_series, leave_one_out, without
from pipeline.evaluation.scores import Scored

CLAIM = Claim(number=1, text="", ours="ours", theirs="theirs", effects={"average": 0.93})


def run_of(gains: list[float]) -> list[Scored]:
    """A meeting a gain, one example each."""
    return [Scored(f"e{i}", "A", f"m{i}", 10, {"average": 20.0 + gain}) for i, gain in enumerate(gains)]


def runs_of(gains: list[float]) -> dict[str, list[Scored]]:
    return {"ours": run_of(gains), "theirs": run_of([0.0] * len(gains))}


def test_each_meeting_is_left_out_in_turn() -> None:
    """Nine gains of 1 and one of 10: without the large one the mean is 1, without a small one (8 + 10) / 9 = 2.

    All gains are gains, so that no other signs are as extreme as their own, and the word stays.
    """
    found = leave_one_out(Judged(CLAIM, "average", None, None, "supported"), runs_of([1.0] * 9 + [10.0]), {}, 2000)
    assert found is not None
    assert (found.least, found.largest) == (pytest.approx(1.0), pytest.approx(2.0))
    assert found.words == {"supported": 10}


def test_a_word_that_hangs_on_one_meeting_changes_without_it() -> None:
    """Six gains of 1 are just enough for the test (2 of 64 signs); five are not, whichever is left out."""
    found = leave_one_out(Judged(CLAIM, "average", None, None, "supported"), runs_of([1.0] * 6), {}, 4000)
    assert found is not None
    assert found.words == {"undecided": 6}


def test_a_word_needs_a_gain_in_every_run_that_is_left() -> None:
    """Ten gains of 1 and a second run of 2 and −1: without the 2 that run loses. So the word falls once of twelve."""
    first, second = (
        runs_of([1.0] * 10),
        {
            name: [replace(row, meeting=f"n{row.id}", id=f"n{row.id}") for row in rows]
            for name, rows in runs_of([2.0, -1.0]).items()
        },
    )
    both = {name: [*first[name], *second[name]] for name in first}
    found = leave_one_out(Judged(CLAIM, "average", None, None, "supported"), both, {1: first, 2: second}, 2000)
    assert found is not None
    assert found.words == {"supported": 11, "undecided": 1}


def test_p_is_raised_as_holms_adjustment_raised_it() -> None:
    """Ten gains of 1: without one p is 2 of 512 signs, 0.004: four times as much is below 0.05, forty times not."""
    words = []
    for raised in (4, 40):
        one = Judged(CLAIM, "average", None, 0.01, "supported", p_holm=raised * 0.01)
        found = leave_one_out(one, runs_of([1.0] * 10), {}, 2000)
        assert found is not None
        words.append(found.words)
    assert words == [{"supported": 10}, {"undecided": 10}]


def test_a_clients_only_meeting_is_not_left_out() -> None:
    """B has one meeting of eleven; without it there would be no mean over clients."""
    runs = runs_of([1.0] * 10)
    for name, rows in runs.items():
        runs[name] = [*rows, replace(rows[0], client="B", meeting="only", id="only")]
    found = leave_one_out(Judged(CLAIM, "average", None, None, "supported"), runs, {}, 2000)
    assert found is not None
    assert sum(found.words.values()) == 10


def test_a_claim_that_was_not_run_is_left_out() -> None:
    assert leave_one_out(Judged(CLAIM, "average", None, None, "not run"), {}, {}, 100) is None


def test_a_series_is_one_cluster() -> None:
    rows = [Scored(name, "Product", name, 10, {"average": 1.0}) for name in ("ES2002a", "ES2002b", "IS1000a")]
    assert [row.meeting for row in in_series({"run": rows})["run"]] == ["ES2002", "ES2002", "IS1000"]


def test_icsi_series_are_clusters_too() -> None:
    """A group of ICSI is named by three letters; the meetings of a committee belong to none."""
    rows = [replace(run_of([0.0])[0], meeting=name) for name in ("Bmr001", "Bmr031", "ES2002a", "education_17")]
    assert [row.meeting for row in in_icsi_series_too({"run": rows})["run"]] == ["Bmr", "Bmr", "ES2002", "education_17"]


def test_meetings_are_left_out_of_every_run() -> None:
    fewer = without(runs_of([1.0, 2.0, 3.0]), {"m1"})
    assert {name: [row.meeting for row in rows] for name, rows in fewer.items()} == {
        "ours": ["m0", "m2"],
        "theirs": ["m0", "m2"],
    }
