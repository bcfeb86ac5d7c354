"""Shares of wins, ties and losses with intervals, and how far raters agree."""

from __future__ import annotations

import pandas as pd
import pytest

from pipeline.evaluation.agreement import kappa, shares


def ratings(**by_rater: str) -> pd.DataFrame:
    """A rater's outcomes, as in `wlt`, of examples 0, 1, 2 of as many meetings; `-` is no rating."""
    outcomes = {"w": "win", "l": "loss", "t": "tie"}
    rows = [
        {
            "client": "A",
            "meeting": f"m{n}",
            "example": f"e{n}",
            "item": f"i{n}",
            "criterion": "c",
            "outcome": outcomes[o],
        }
        for rater in by_rater.values()
        for n, o in enumerate(rater)
        if o != "-"
    ]
    return pd.DataFrame(rows)


def test_a_share_is_a_mean_over_examples() -> None:
    """Example 0 has two wins, example 1 a win and a loss: wins (1 + 1/2) / 2 = 75%, losses 25%."""
    found = shares(ratings(x="ww", y="wl"), samples=200)
    assert {outcome: share.value for outcome, share in found.items()} == {"win": 0.75, "tie": 0.0, "loss": 0.25}
    assert found["win"].is_point, "two meetings are too few for an interval"


def test_a_share_has_an_interval_over_meetings() -> None:
    found = shares(ratings(x="wwwwwwwllt"), samples=200)
    assert found["win"].value == pytest.approx(0.7)
    assert found["win"].low < 0.7 < found["win"].high


def test_each_client_counts_the_same() -> None:
    """Client A wins one of two, client B its only one: (1/2 + 1) / 2 = 75%."""
    other = ratings(x="w").assign(client="B", meeting="other")
    assert shares(pd.concat([ratings(x="wl"), other]), samples=200)["win"].value == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("table", "expected", "subjects"),
    [
        # Agreement on one of two subjects, 1/2; of four ratings three are wins, so by chance 9/16 + 1/16 = 5/8.
        ({"x": "ww", "y": "wl"}, (1 / 2 - 5 / 8) / (1 - 5 / 8), 2),
        # Most subjects have two raters; the last one has three and does not count.
        ({"x": "wwt", "y": "wlt", "z": "--t"}, (1 / 2 - 5 / 8) / (1 - 5 / 8), 2),
        ({"x": "wl", "y": "wl"}, 1.0, 2),
        ({"x": "wl"}, None, 0),
        ({"x": "ww", "y": "ww"}, None, 2),
    ],
    ids=["two raters", "a third rater of one subject", "full agreement", "one rater", "one outcome"],
)
def test_kappa_by_hand(table: dict[str, str], expected: float | None, subjects: int) -> None:
    found, count = kappa(ratings(**table))
    assert (found if found is None else pytest.approx(found), count) == (expected, subjects)
