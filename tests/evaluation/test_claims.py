"""Verdicts by margins fixed beforehand."""

from __future__ import annotations

import pytest
from made_scores import always, scored

from pipeline.evaluation.scores import Scored
from pipeline.report.claim_rows import claim_row
from pipeline.report.claims.claim import Claim, Rule, Verdict, by_margins, judge


@pytest.mark.parametrize(
    ("rule", "low", "high", "effect", "verdict"),
    [
        ("above", 0.1, 2.0, 1.0, "held"),
        ("above", -0.2, 0.4, 1.0, "did not hold"),  # 0.4 is below half of the paper's 1.0
        ("above", -0.2, 0.6, 1.0, "cannot tell"),
        ("above", 0.05, 0.3, 1.0, "held"),  # surely a gain, and surely not the paper's: the sign is what is claimed
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
        ("above", 0.0, 0.0, None, "cannot tell"),  # one adapter in both runs
        ("above", 0.0, 0.0, 1.0, "did not hold"),
        ("above", -0.2, 0.5, 1.0, "cannot tell"),  # just half of it
        ("below", -0.4, 0.0, None, "cannot tell"),
        ("comparable", -0.5, 0.1, None, "cannot tell"),
        ("comparable", -0.9, -0.5, None, "cannot tell"),
        ("little", -0.5, 0.4, None, "cannot tell"),
        ("little", -0.4, 0.5, None, "cannot tell"),
        ("little", 0.5, 0.9, None, "cannot tell"),
    ],
)
def test_an_interval_gives_a_verdict(
    rule: Rule, low: float, high: float, effect: float | None, verdict: Verdict
) -> None:
    assert by_margins(rule, low, high, effect) == verdict


CLAIM = Claim("ours is above", "Table IV", "ours", "theirs", effect=1.0)


def test_a_claim_is_put_to_the_two_runs() -> None:
    judged = judge(CLAIM, {"ours": scored(1.5), "theirs": scored(0.0)}, always, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.5)
    assert judged.verdict == "held"


def test_a_claim_about_losses_holds_below_nothing() -> None:
    """Losses of 100 nats and 110 over 10 tokens: one nat a token less."""

    def rows(loss: float) -> list[Scored]:
        return [Scored(f"e{i}", "A", f"m{i}", 10, {"loss": loss + i}) for i in range(20)]

    claim = Claim("ours loses less", "not in the paper", "ours", "theirs", "below", "loss")
    judged = judge(claim, {"ours": rows(100.0), "theirs": rows(110.0)}, always, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(-1.0)
    assert judged.verdict == "held"


def test_only_the_clients_it_names_count() -> None:
    ours = scored(1.0, "A") + scored(-3.0, "B")
    claim = Claim("ours is above", "Fig. 8", "ours", "theirs", clients=("A",))
    judged = judge(claim, {"ours": ours, "theirs": scored(0.0, "A") + scored(0.0, "B")}, always, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.0)


def test_clients_that_one_run_lacks_are_left_out() -> None:
    judged = judge(CLAIM, {"ours": scored(1.0, "A") + scored(9.0, "B"), "theirs": scored(0.0, "A")}, always, 200)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.0)


def test_a_run_that_has_not_converged_tells_nothing() -> None:
    judged = judge(CLAIM, {"ours": scored(1.5), "theirs": scored(0.0)}, lambda run, _clients: run != "ours", 200)
    assert (judged.by_interval, judged.verdict) == ("held", "cannot tell")


def test_a_run_that_is_not_there_was_not_run() -> None:
    assert judge(CLAIM, {"ours": scored(1.5)}, always, 200).verdict == "not run"


def test_the_papers_number_stands_in_the_unit_of_its_claim() -> None:
    """52 wins and 4 losses of 60 are 80 of 100."""
    rated = Claim("ours is preferred", "Fig. 5", "ours", "theirs", metric="preference", effect=48 / 60)
    assert claim_row(judge(rated, {}, always, 200), {}, "")["paper"] == "+80"
    loss = judge(Claim("ours loses less", "ours", "ours", "theirs", "below", "loss"), {}, always, 200)
    assert claim_row(loss, {}, "")["ours"] == "–"


def test_a_gain_that_is_surely_small_is_said_to_be() -> None:
    """0.3 for each example: above 0, and below half of the paper's 1.0."""
    small, large = (judge(CLAIM, {"ours": scored(gain), "theirs": scored(0.0)}, always, 200) for gain in (0.3, 0.6))
    assert claim_row(small, {}, "")["remark"] == "surely less than half of the paper’s"
    assert claim_row(large, {}, "")["remark"] == ""


def test_no_margin_in_nats_was_fixed() -> None:
    with pytest.raises(ValueError, match="no margin in nats"):
        Claim("losses are alike", "Fig. 6", "ours", "theirs", "comparable", "loss")


def test_a_claim_on_all_of_qmsum_stands_beside_the_laptops() -> None:
    """The laptop cannot tell; on all examples ours is a point above."""
    small = judge(CLAIM, {"ours": scored(1.0), "theirs": scored(0.0)}, lambda run, clients: False, 200)
    large = judge(CLAIM, {"ours": scored(1.0), "theirs": scored(0.0)}, always, 200)
    row = claim_row(small, {CLAIM.text: large}, "on all of QMSum (tiny-llama, seed 1)")
    assert (row["verdict"], row["full_verdict"]) == ("cannot tell", "held")
    assert row["full"].startswith("on all of QMSum (tiny-llama, seed 1): +1.00, ")


def test_clients_with_one_adapter_in_both_runs_are_named() -> None:
    """B's example has the same loss and ROUGE in both, to the last digit; A's has not."""

    def of(average: float) -> list[Scored]:
        return [
            Scored("a", "A", "m", 10, {"average": average, "loss": 20.0 + average}),
            Scored("b", "B", "m", 10, {"average": 2.0, "loss": 30.0}),
        ]

    judged = judge(CLAIM, {"ours": of(3.0), "theirs": of(1.0)}, always, 200)
    assert judged.same == ("B",)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(1.0), "half of A's two points"
    assert judged.loss is not None
    assert judged.loss.value == pytest.approx(0.1), "2 nats over 10 tokens, halved"
