"""A judged claim as a row of a page and as a record of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.evaluation.claims import Claim, Judged, Word
from pipeline.evaluation.intervals import Interval
from pipeline.report.claim_rows import COLOURS, claim_record, claim_row

CLAIM = Claim(number=1, text="ours is better", ours="ours", theirs="theirs", effects={"average": 0.93, "loss": 0.02})


def judged(metric: str, gain: Interval | None, **more: Any) -> Judged:
    word: Word = "not run" if gain is None else "undecided"
    return Judged(CLAIM, metric, gain, **({"p": None if gain is None else 0.25, "word": word} | more))


def test_rouge_has_two_digits_and_a_loss_three() -> None:
    """A standard error of 0.05 with 30 degrees of freedom could have seen 0.05 · (2.042 + 0.854)."""
    rouge = claim_row(judged("average", Interval(1.234, -0.5, 2.0, 0.05, 30), p_holm=0.5))
    assert (rouge["effect"], rouge["gain"], rouge["interval"]) == ("+0.93", "+1.23", "−0.50 … +2.00")
    assert (rouge["p"], rouge["visible"]) == ("0.500", "0.14")
    assert claim_row(judged("average", Interval(1.2, 0.5, 2.0, 0.05, 30), p_holm=0.0004))["p"] == "<0.001"
    assert claim_row(judged("average", Interval(1.2, 0.5, 2.0, 0.05, 30), p_holm=0.001))["p"] == "0.001"
    loss = claim_row(judged("loss", Interval(-0.0123, -0.05, 0.01, 0.005, 30), p_holm=0.5))
    assert (loss["effect"], loss["gain"], loss["visible"]) == ("+0.020", "−0.012", "0.014")


def test_what_was_not_run_has_an_effect_alone() -> None:
    row = claim_row(judged("average", None))
    assert (row["effect"], row["gain"], row["interval"], row["p"], row["visible"]) == ("+0.93", "–", "", "", "")
    assert (row["word"], row["why"], row["shared"]) == ("not run", "", "")


def test_a_row_says_why_and_what_else_rests_on_its_adapters() -> None:
    one = judged(
        "average", Interval(1, 0, 2, 0.5), why="not converged: ours", shared=("claim 2 at A", "claim 3 at A, B")
    )
    row = claim_row(one)
    assert (row["why"], row["shared"]) == ("not converged: ours", "claim 2 at A; claim 3 at A, B")


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
    assert COLOURS[word] == claim_row(judged("average", Interval(1, 0, 2, 0.5), word=word))["colour"] == colour


def test_a_record_has_all_that_a_claim_was_judged_by() -> None:
    one = judged("loss", Interval(0.01234567, -0.01, 0.03, 0.01, 30), p_holm=0.5, shared=("claim 2 at A",))
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
        "gain": {"value": 0.0123, "low": -0.01, "high": 0.03, "standard_error": 0.01},
        "visible": 0.029,
        "by_run": [],
        "p": 0.25,
        "p_holm": 0.5,
        "word": "undecided",
        "why": "",
        "shared": ["claim 2 at A"],
    }
    assert claim_record(judged("loss", None))["gain"] is None
