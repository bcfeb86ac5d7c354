"""A judged claim as a row of a page and as a record of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.evaluation.claims import Claim, Judged, Word
from pipeline.evaluation.intervals import Interval
from pipeline.report.claim_rows import COLOURS, claim_record, claim_row, client_rows

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


def test_a_client_has_its_gain_of_each_run() -> None:
    """(1 − 0.5) / 2 is 0.25 in the first run, (0 + 2) / 2 is 1 in the second; what was not run is left out."""
    one = judged("average", Interval(0.6, 0, 2, 0.5), by_client={"A": (1.0, 0.0), "B": (-0.5, 2.0)})
    assert claim_row(one)["by_run"] == "+0.25, +1.00"
    assert client_rows([one, judged("loss", None)]) == (
        ["claim", "endpoint", "A", "B"],
        [["1: ours is better", "ROUGE", "+1.00, 0.00", "−0.50, +2.00"]],
    )


@pytest.mark.parametrize(
    ("word", "error", "shown"),
    [("undecided", 0.05, "10"), ("undecided", 1.0, "10 of 388"), ("excluded", 1.0, "10"), ("not run", 1.0, "10")],
)
def test_what_is_undecided_says_how_many_meetings_would_decide_it(word: Word, error: float, shown: str) -> None:
    """A standard error of 1 could have seen 2.896; half of the effect is 0.465: 10 · (2.896 / 0.465)² = 387.9."""
    one = judged("average", Interval(1.0, 0.0, 2.0, error, 30), word=word, meetings=10)
    assert claim_row(one)["meetings"] == shown


def test_of_a_margin_all_of_it_has_to_be_visible() -> None:
    """10 · (2.896 / 0.5)² = 335.5."""
    claim = CLAIM.model_copy(update={"margin": 0.5})
    assert Judged(claim, "average", Interval(1, 0, 2, 1.0, 30), 0.1, "undecided", meetings=10).meetings_to_decide == 336
    assert Judged(claim, "average", Interval(1, 0, 2), 0.1, "undecided", meetings=10).meetings_to_decide is None


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
    gains = {"A": (0.0123456, 0.03), "B": (0.0076544, 0.01)}
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
        "meetings_to_decide": 84,
        "by_run": [0.01, 0.02],
        "by_client": {"A": [0.012346, 0.03], "B": [0.007654, 0.01]},
        "p": 0.25,
        "p_holm": 0.5,
        "word": "undecided",
        "why": "",
        "shared": ["claim 2 at A"],
    }
    assert claim_record(judged("loss", None))["gain"] is None
