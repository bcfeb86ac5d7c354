"""Verdicts by margins fixed beforehand."""

from __future__ import annotations

import pytest

from pipeline.evaluation.claims import Claim, Rule, Verdict, by_margins, judge
from pipeline.evaluation.scores import Scored


@pytest.mark.parametrize(
    ("rule", "low", "high", "effect", "verdict"),
    [
        ("above", 0.1, 2.0, 1.0, "held"),
        ("above", -0.2, 0.4, 1.0, "did not hold"),  # 0.4 is below half of the paper's 1.0
        ("above", -0.2, 0.6, 1.0, "cannot tell"),
        ("above", -0.2, 0.1, None, "cannot tell"),
        ("above", -0.2, -0.1, None, "did not hold"),
        ("below", -0.9, -0.1, None, "held"),
        ("below", 0.1, 0.9, None, "did not hold"),
        ("below", -0.2, 0.3, -1.0, "did not hold"),  # at most 0.2 of the 1.0 that the paper loses
        ("comparable", -0.4, 0.9, None, "held"),
        ("comparable", -0.6, 0.9, None, "cannot tell"),
        ("comparable", -2.0, -0.6, None, "did not hold"),
        ("little", -0.4, 0.4, None, "held"),
        ("little", -0.4, 0.6, None, "cannot tell"),
        ("little", 0.6, 0.9, None, "did not hold"),
    ],
)
def test_an_interval_gives_a_verdict(
    rule: Rule, low: float, high: float, effect: float | None, verdict: Verdict
) -> None:
    assert by_margins(rule, low, high, effect) == verdict


def scored(shift: float, client: str = "A") -> list[Scored]:
    """Twenty meetings of one example each; all shifted alike, so the difference has no spread."""
    return [Scored(f"{client}{i}", client, f"m{i}", 10, {"average": 20.0 + i + shift}) for i in range(20)]


CLAIM = Claim("ours is above", "Table IV", "ours", "theirs", effect=1.0)


def test_a_claim_is_put_to_the_two_runs() -> None:
    judged = judge(CLAIM, {"ours": scored(1.5), "theirs": scored(0.0)}, {}, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.5)
    assert judged.verdict == "held"


def test_only_the_clients_it_names_count() -> None:
    ours = scored(1.0, "A") + scored(-3.0, "B")
    claim = Claim("ours is above", "Fig. 8", "ours", "theirs", clients=("A",))
    judged = judge(claim, {"ours": ours, "theirs": scored(0.0, "A") + scored(0.0, "B")}, {}, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.0)


def test_clients_that_one_run_lacks_are_left_out() -> None:
    judged = judge(CLAIM, {"ours": scored(1.0, "A") + scored(9.0, "B"), "theirs": scored(0.0, "A")}, {}, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.0)


def test_a_run_that_has_not_converged_tells_nothing() -> None:
    judged = judge(CLAIM, {"ours": scored(1.5), "theirs": scored(0.0)}, {"ours": False}, 200)
    assert (judged.by_interval, judged.verdict) == ("held", "cannot tell")


def test_a_run_that_is_not_there_was_not_run() -> None:
    assert judge(CLAIM, {"ours": scored(1.5)}, {}, 200).verdict == "not run"
