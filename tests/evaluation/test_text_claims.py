"""The words of FedNLP's claims, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.text_claims import TextClaim, judge, word_of
from pipeline.tasks.task import Metric

GREATER = TextClaim(number=1, task="t", text="x", terms=[{"a": 1, "b": -1}], effect=2.0)
METRICS = {task: Metric("acc", "accuracy", "%", "more", 1) for task in "tu"}
ALIKE = TextClaim(number=2, task="t", text="x", terms=[{"a": 1, "b": -1}], within=(-1.0, 1.0))


@pytest.mark.parametrize(
    ("claim", "interval", "seeds", "p", "word"),
    [
        (GREATER, (0.2, 3.0), [1, 2, 3], 0.01, "held"),
        (GREATER, (0.2, 3.0), [1, 2, 3], 0.06, "cannot tell"),
        (GREATER, (0.2, 3.0), [1, 2, -1], 0.01, "cannot tell"),
        (GREATER, (0.2, 3.0), [1], 0.01, "cannot tell"),
        (GREATER, (-0.5, 0.9), [1, -1, 0], 0.5, "did not"),
        (GREATER, (-0.5, 0.9), [1], 0.5, "cannot tell"),
        (GREATER, (-0.5, 1.1), [1, -1, 0], 0.5, "cannot tell"),
        (ALIKE, (-0.9, 0.9), [1, 1, 1], 0.9, "held"),
        (ALIKE, (-0.9, 1.1), [1, 1, 1], 0.9, "cannot tell"),
        (ALIKE, (-0.9, 0.9), [3, -3, 0], 0.9, "cannot tell"),
        (ALIKE, (1.1, 3.0), [1, 1, 1], 0.01, "did not"),
        (ALIKE, (-0.9, 0.9), [1], 0.9, "cannot tell"),
    ],
)
def test_words(claim: TextClaim, interval: tuple[float, float], seeds: list[float], p: float, word: str) -> None:
    assert word_of(Interval(sum(interval) / 2, *interval), claim, seeds, p) == word


def rows(score: float) -> dict[int, list[dict[str, Any]]]:
    """Forty texts at three seeds, all of nearly one score."""
    return {
        seed: [{"id": str(i), "group": str(i), "label": "x", "acc": score + 0.01 * (i % 3)} for i in range(40)]
        for seed in (1, 2, 3)
    }


def test_holm_runs_over_the_claims_of_a_task() -> None:
    """Two claims of one task and one of another: p doubles for the two alone."""
    claims = [
        GREATER,
        GREATER.model_copy(update={"number": 3, "terms": [{"c": 1, "b": -1}]}),
        GREATER.model_copy(update={"number": 4, "task": "u"}),
    ]
    found = judge(claims, {"a": rows(5.0), "b": rows(1.0), "c": rows(5.0)}, {}, METRICS, 199)
    assert [one.word for one in found] == ["held"] * 3
    assert [round((one.p_holm or 0) / (one.p or 1)) for one in found] == [2, 2, 1]


def test_a_claim_on_a_run_that_is_not_there_is_not_run() -> None:
    (found,) = judge([GREATER], {"a": rows(1.0)}, {}, METRICS, 99)
    assert (found.word, found.value) == ("not run", None)


def test_a_claim_has_to_hold_against_each_rival() -> None:
    """a is 4 above b and 1 above c, which shows; d was not made."""
    rivals = [{"a": 1, "b": -1}, {"a": 1, "c": -1}, {"a": 1, "d": -1}]
    claim = GREATER.model_copy(update={"terms": rivals})
    scored = {"a": rows(5.0), "b": rows(1.0), "c": rows(4.0)}
    (found,) = judge([claim], scored, {}, METRICS, 199)
    assert found.value is not None
    assert (found.word, found.rivals) == ("held", 2)
    assert found.value.value == pytest.approx(1.0)


def test_one_rival_at_one_seed_is_enough_against_a_claim() -> None:
    """a is 0.1 above b at every seed; above c by 0.5, 0.5 and −0.2: 0.27 on average, and yet c decides."""
    ends = {"a": (0.0, 0.0, 0.0), "b": (0.1, 0.1, 0.1), "c": (0.5, 0.5, -0.2)}
    curves = {run: {seed: [1.0, own[seed - 1]] for seed in (1, 2, 3)} for run, own in ends.items()}
    claim = GREATER.model_copy(update={"over": "end", "terms": [{"a": -1, "b": 1}, {"a": -1, "c": 1}]})
    (found,) = judge([claim], {}, curves, METRICS, 99)
    assert found.word == "cannot tell"
    assert found.by_seed == pytest.approx((0.5, 0.5, -0.2))


def test_a_claim_that_was_not_run_counts_in_holms_adjustment() -> None:
    """Two claims of one task, one of which has no runs: p doubles all the same."""
    claims = [GREATER, GREATER.model_copy(update={"number": 3, "terms": [{"c": 1, "b": -1}]})]
    found = judge(claims, {"a": rows(5.0), "b": rows(1.0)}, {}, METRICS, 199)
    assert (found[0].p_holm or 0) / (found[0].p or 1) == pytest.approx(2)


def test_seeds_that_one_run_alone_has_are_not_compared() -> None:
    """a is 4 above b at seed 1, the one that both have; at seeds 2 and 3 a scores 90."""
    a = {1: rows(5.0)[1], 2: rows(90.0)[2], 3: rows(90.0)[3]}
    (found,) = judge([GREATER], {"a": a, "b": {1: rows(1.0)[1]}}, {}, METRICS, 199)
    assert found.value is not None
    assert found.value.value == pytest.approx(4.0)
    assert found.by_seed == pytest.approx((4.0,))


def test_runs_without_a_seed_in_common_are_not_compared() -> None:
    apart = {"a": {1: rows(5.0)[1]}, "b": {2: rows(1.0)[2]}}
    (found,) = judge([GREATER.model_copy(update={"over": "end"})], apart, {}, METRICS, 99)
    assert found.word == "not run"


@pytest.mark.parametrize(
    ("over", "expected", "word"),
    [
        ("first third", [1.0, 1.0, 1.0], "held"),
        ("end", [-1.0, -1.0, -1.0], "did not"),
        ("roughness", [2.0, 2.0, 2.0], "held"),
    ],
)
def test_curves_are_compared_seed_by_seed(over: Any, expected: list[float], word: str) -> None:
    """Six rounds: a is 1 above b in the first two, and 1 below at the end.

    Over the last half a changes by −2, +2, whose standard deviation is 2, and b by −1, −1.
    """
    a, b = [6.0, 5.0, 3.0, 2.0, 0.0, 2.0], [5.0, 4.0, 4.0, 5.0, 4.0, 3.0]
    curves = {"a": dict.fromkeys((1, 2, 3), a), "b": dict.fromkeys((1, 2, 3), b)}
    claim = GREATER.model_copy(update={"over": over})
    (found,) = judge([claim], {}, curves, METRICS, 99)
    assert list(found.by_seed) == pytest.approx(expected)
    assert found.word == word
