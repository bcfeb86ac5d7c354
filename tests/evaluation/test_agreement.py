"""Wins, ties and losses with intervals, and how far raters agree."""

from __future__ import annotations

import pytest

from pipeline.evaluation.agreement import fleiss_kappa, outcomes_of
from pipeline.report.ratings.returned import COLUMNS
from pipeline.report.ratings.sheets import CRITERIA


def test_fleiss_kappa_by_hand() -> None:
    """Fleiss' own example: 10 subjects, 14 raters, 5 categories, κ = 0.210."""
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    assert fleiss_kappa(table) == pytest.approx(0.210, abs=5e-4)
    assert fleiss_kappa([[2, 0], [0, 2]]) == 1.0


def test_kappa_needs_as_many_raters_everywhere() -> None:
    with pytest.raises(ValueError, match="same number of raters"):
        fleiss_kappa([[2, 0], [1, 0]])


def rating(rater: str, example: str, outcome: str) -> dict[str, str]:
    values = ("s", rater, f"i{example}", "A", f"m{example}", example, "AdaFedAvg", "t", CRITERIA[0], outcome)
    return dict(zip(COLUMNS, values, strict=True))


def test_shares_are_over_examples() -> None:
    """Example 1 has two wins, example 2 a win and a loss: wins (1 + 1/2) / 2 = 75%, losses 25%."""
    rows = [rating("x", "1", "win"), rating("y", "1", "win"), rating("x", "2", "win"), rating("y", "2", "loss")]
    found = outcomes_of(rows, "AdaFedAvg", samples=200)
    assert [found.shares[outcome].value for outcome in ("win", "tie", "loss")] == [0.75, 0.0, 0.25]
    assert found.shares["win"].is_point, "two meetings are too few for an interval"
    assert found.kappa == pytest.approx((0.5 - 0.625) / (1 - 0.625))


def test_kappa_is_over_the_pairs_that_most_have_rated() -> None:
    """A third rater of one pair of three does not take the other two out of it: they agree once of twice."""
    two = [rating(r, e, o) for r in "xy" for e, o in (("1", "win"), ("2", "win" if r == "x" else "loss"))]
    three = [rating(r, "3", "tie") for r in "xyz"]
    found = outcomes_of([*two, *three], "AdaFedAvg", samples=200)
    assert (found.kappa, found.subjects) == (pytest.approx((0.5 - 0.625) / (1 - 0.625)), 2)


def test_a_preference_is_wins_less_losses() -> None:
    """Of ten examples seven are won, two lost and one tied: 5 of 10. Ratings against another run are another's."""
    outcomes = ["win"] * 7 + ["loss"] * 2 + ["tie"]
    rows = [rating("x", str(n), outcome) for n, outcome in enumerate(outcomes)]
    others = [row | {"against": "AdaCentralized", "outcome": "loss"} for row in rows]
    found = outcomes_of([*rows, *others], "AdaFedAvg", samples=200)
    assert found.preference.value == pytest.approx(0.5)
    assert found.ratings == 10
    assert found.preference.low < 0.5 < found.preference.high
    assert outcomes_of(others, "AdaCentralized", samples=200).preference.ends == (-1.0, -1.0)


def test_one_rater_agrees_with_nobody() -> None:
    """And of raters who put everything into one category nothing can be said."""
    alone = [rating("x", "1", "win"), rating("x", "2", "loss")]
    assert outcomes_of(alone, "AdaFedAvg", samples=200).kappa is None
    same = [rating(rater, example, "win") for rater in "xy" for example in "12"]
    assert outcomes_of(same, "AdaFedAvg", samples=200).kappa is None
