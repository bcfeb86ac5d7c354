"""Shares of wins, ties and losses with intervals, and how far raters agree."""

import pandas as pd
import pytest

from pipeline.evaluation.agreement import kappa, shares


def ratings(*raters: str, client: str = "A") -> pd.DataFrame:
    """Each rater's outcomes, as in `wlt`, of examples 0, 1, 2 of as many meetings; `-` is no rating."""
    outcomes, common = {"w": "win", "l": "loss", "t": "tie"}, {"client": client, "criterion": "c"}
    rated = [(n, outcomes[o]) for rater in raters for n, o in enumerate(rater) if o != "-"]
    rows = [common | {"outcome": o} | dict.fromkeys(("meeting", "example", "item"), n) for n, o in rated]
    return pd.DataFrame(rows).astype(str)


def test_a_share_is_a_mean_over_examples_then_clients() -> None:
    """A's wins: two of two and one of two, 3/4; its loss 1/4. B's only example is won: (3/4 + 1) / 2 and 1/8."""
    found = shares(pd.concat([ratings("ww", "wl"), ratings("w", client="B")]), samples=200)
    assert {outcome: share.value for outcome, share in found.items()} == {"win": 0.875, "tie": 0.0, "loss": 0.125}
    assert found["win"].is_point, "so few meetings are too few for an interval"


def test_a_share_has_an_interval_over_meetings() -> None:
    won = shares(ratings("wwwwwwwllt"), samples=200)["win"]
    assert won.value == pytest.approx(0.7)
    assert won.low < 0.7 < won.high


@pytest.mark.parametrize(
    ("table", "expected", "subjects"),
    [
        # Agreement on one of two subjects, 1/2; of four ratings three are wins, so by chance 9/16 + 1/16 = 5/8.
        (("ww", "wl"), (1 / 2 - 5 / 8) / (1 - 5 / 8), 2),
        # Most subjects have two raters; the last one has three and does not count.
        (("wwt", "wlt", "--t"), (1 / 2 - 5 / 8) / (1 - 5 / 8), 2),
        (("wl", "wl"), 1.0, 2),
        (("wl",), None, 0),
        (("ww", "ww"), None, 2),
    ],
    ids=["two raters", "a third rater of one subject", "full agreement", "one rater", "one outcome"],
)
def test_kappa_by_hand(table: tuple[str, ...], expected: float | None, subjects: int) -> None:
    found, count = kappa(ratings(*table))
    assert (found if found is None else pytest.approx(found), count) == (expected, subjects)
