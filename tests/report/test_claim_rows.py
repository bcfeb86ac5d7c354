"""A judged claim as a row of a page and as a record of a file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.evaluation.claims import Claim, Judged, Word
from pipeline.evaluation.intervals import Interval
from pipeline.report.claim_rows import COLOURS, claim_record, claim_row, client_rows

RUNS = {11: "A", 12: "B", 13: "C"}
CLAIM = Claim(number=1, text="ours is better", ours="ours", theirs="theirs", effects={"average": 0.93, "loss": 0.02})


def judged(metric: str, gain: Interval | None, **more: Any) -> Judged:
    word: Word = "not run" if gain is None else "undecided"
    return Judged(CLAIM, metric, gain, **({"p": None if gain is None else 0.25, "word": word} | more))


def test_rouge_has_two_digits_and_a_loss_three() -> None:
    """A standard error of 0.05 with 30 degrees of freedom could have seen 0.05 · (2.042 + 0.854)."""
    rouge = claim_row(judged("average", Interval(1.234, -0.5, 2.0, 0.05, 30), p_holm=0.5), RUNS)
    assert (rouge["effect"], rouge["gain"], rouge["interval"]) == ("+0.93", "+1.23", "−0.50 … +2.00")
    assert (rouge["p"], rouge["visible"]) == ("0.500", "0.14")
    assert claim_row(judged("average", Interval(1.2, 0.5, 2.0, 0.05, 30), p_holm=0.0004), RUNS)["p"] == "<0.001"
    assert claim_row(judged("average", Interval(1.2, 0.5, 2.0, 0.05, 30), p_holm=0.001), RUNS)["p"] == "0.001"
    loss = claim_row(judged("loss", Interval(-0.0123, -0.05, 0.01, 0.005, 30), p_holm=0.5), RUNS)
    assert (loss["effect"], loss["gain"], loss["visible"]) == ("+0.020", "−0.012", "0.014")


def test_a_small_effect_in_loss_has_four_digits() -> None:
    """Of 0.005 nats three would hide whether an end lies above 0."""
    small = CLAIM.model_copy(update={"effects": {"loss": 0.005}})
    row = claim_row(Judged(small, "loss", Interval(-0.0005, -0.0012, 0.0001, 0.0003, 30), 0.5, "undecided"), RUNS)
    assert (row["effect"], row["gain"], row["interval"]) == ("+0.0050", "−0.0005", "−0.0012 … +0.0001")


def test_a_margin_is_told_to_be_ours() -> None:
    """Every other effect in ROUGE is the paper's."""
    claim = CLAIM.model_copy(update={"effects": {"average": -0.5}, "margin": 0.5})
    one = replace(judged("average", Interval(-0.2, -0.4, 0.1, 0.1, 30)), claim=claim)
    assert claim_row(one, RUNS)["effect"] == "−0.50 (ours)"


def test_what_was_not_run_has_an_effect_alone() -> None:
    row = claim_row(judged("average", None), RUNS)
    assert (row["effect"], row["gain"], row["interval"], row["p"], row["visible"]) == ("+0.93", "–", "", "", "")
    assert (row["word"], row["why"], row["shared"]) == ("not run", "", "")


def test_a_row_says_why_and_what_else_rests_on_its_adapters() -> None:
    one = judged(
        "average", Interval(1, 0, 2, 0.5), why="not converged: ours", shared=("claim 2 at A", "claim 3 at A, B")
    )
    row = claim_row(one, RUNS)
    assert (row["why"], row["shared"]) == ("not converged: ours", "claim 2 at A; claim 3 at A, B")


def test_a_client_has_its_gain_of_each_run() -> None:
    """(1 − 0.5) / 2 is 0.25 in the first run, (0 + 2) / 2 is 1 in the second; what was not run is left out."""
    one = judged("average", Interval(0.6, 0, 2, 0.5), by_client={"A": {12: 1.0, 13: 0.0}, "B": {12: -0.5, 13: 2.0}})
    assert claim_row(one, RUNS)["by_run"] == "B +0.25, C +1.00"
    assert client_rows([one, judged("loss", None)], RUNS) == (
        ["claim", "endpoint", "A", "B"],
        [["1: ours is better", "ROUGE", "B +1.00, C 0.00", "B −0.50, C +2.00"]],
    )


@pytest.mark.parametrize(
    ("word", "error", "why", "shown"),
    [
        ("undecided", 0.05, "", "10"),
        ("undecided", 1.0, "", "10 of 84"),
        ("undecided", 1.0, "the gate is not supported", "10"),
        ("excluded", 1.0, "", "10"),
        ("not run", 1.0, "", "10"),
    ],
)
def test_what_is_undecided_says_how_many_meetings_would_show_its_gain(
    word: Word, error: float, why: str, shown: str
) -> None:
    """A standard error of 1 could have seen 2.896; the gain is 1: 10 · (2.896 / 1)² = 83.9.

    What is undecided for another reason, more meetings do not decide.
    """
    one = judged("average", Interval(1.0, 0.0, 2.0, error, 30), word=word, why=why, meetings=10)
    assert claim_row(one, RUNS)["meetings"] == shown


def test_what_lies_above_less_the_margin_has_to_be_seen() -> None:
    """A gain of 1 is 1.5 above: 10 · (2.896 / 1.5)² = 37.3."""
    claim = CLAIM.model_copy(update={"margin": 0.5})
    assert Judged(claim, "average", Interval(1, 0, 2, 1.0, 30), 0.1, "undecided", meetings=10).meetings_to_show == 38


def test_more_meetings_show_no_gain_where_there_is_none() -> None:
    """Nor do they where there is no interval."""
    assert judged("average", Interval(-1, -2, 0, 1.0, 30), meetings=10).meetings_to_show is None
    assert judged("average", Interval(1, 0, 2), meetings=10).meetings_to_show is None


def test_one_of_three_claims_needs_more_meetings() -> None:
    """At 0.05 / 3 it would see 2.536 + 0.854 = 3.390: 10 · 3.390² = 114.9."""
    assert judged("average", Interval(1, 0, 2, 1.0, 30), level=0.05 / 3, meetings=10).meetings_to_show == 115


@pytest.mark.parametrize(
    ("word", "colour"),
    [
        ("supported", "held"),
        ("supported, smaller", "held"),
        ("excluded", "not"),
        ("undecided", "open"),
        ("not run", "none"),
    ],
)
def test_a_word_has_a_colour(word: Word, colour: str) -> None:
    assert COLOURS[word] == claim_row(judged("average", Interval(1, 0, 2, 0.5), word=word), RUNS)["colour"] == colour


def test_a_record_has_all_that_a_claim_was_judged_by() -> None:
    gains = {"A": {12: 0.0123456, 13: 0.03}, "B": {12: 0.0076544, 13: 0.01}}
    more: dict[str, Any] = {"shared": ("claim 2 at A",), "meetings": 10, "by_client": gains}
    one = judged("loss", Interval(0.01234567, -0.01, 0.03, 0.01, 30), p_holm=0.5, **more)
    record = json.loads(json.dumps(claim_record(one)))
    assert record == {
        "number": 1,
        "text": "ours is better",
        "ours": "ours",
        "theirs": "theirs",
        "family": "",
        "margin": None,
        "metric": "loss",
        "effect": 0.02,
        "gain": {"value": 0.012346, "low": -0.01, "high": 0.03, "standard_error": 0.01},
        "visible": 0.02896,
        "meetings": 10,
        "meetings_to_show": 56,
        "by_run": {"12": 0.01, "13": 0.02},
        "by_client": {"A": {"12": 0.012346, "13": 0.03}, "B": {"12": 0.007654, "13": 0.01}},
        "p": 0.25,
        "p_holm": 0.5,
        "word": "undecided",
        "why": "",
        "shared": ["claim 2 at A"],
    }
    assert claim_record(judged("loss", None))["gain"] is None


def test_a_claim_with_a_margin_records_no_p_for_p_is_of_no_difference_at_all() -> None:
    one = judged("average", Interval(-0.2, -0.4, 0.1, 0.1, 30), p_holm=0.5)
    record = claim_record(replace(one, claim=CLAIM.model_copy(update={"margin": 0.5})))
    assert (record["p"], record["p_holm"]) == (None, None)
