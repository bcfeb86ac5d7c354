"""Verdicts by margins fixed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.claims.claim import Claim, Judged, Metric, Rule, Verdict, by_margins, judge
from pipeline.claims.other_claims import alike_clients, best_client, best_threshold, preferred, share_of_words
from pipeline.evaluation.scores import Scored
from pipeline.figures.claim_rows import claim_row
from pipeline.history import Round, has_converged
from pipeline.tables import read_table, write_table


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


def scored(shift: float, client: str = "A") -> list[Scored]:
    """Twenty meetings of one example each; all shifted alike, so the difference has no spread."""
    return [Scored(f"{client}{i}", client, f"m{i}", 10, {"average": 20.0 + i + shift, "loss": 9.0}) for i in range(20)]


def spread(shift: float, client: str) -> list[Scored]:
    """Twenty meetings of the client's own."""
    return [Scored(row.id, client, f"{client}{row.meeting}", row.tokens, row.values) for row in scored(shift, client)]


def always(_run: str, _clients: Sequence[str]) -> bool:
    return True


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


def row(client: str, number: int, *, best: bool = False, steps: int = 1, seed: int = 1) -> Round:
    return Round(seed, number, client, None, 2.0, best=best, steps=steps)


def test_a_round_is_the_same_after_a_table(tmp_path: Path) -> None:
    one = Round(2, 3, "A", 2.25, 2.5, share_distilled=0.0, steps=4, bytes_up=7, best=True)
    write_table(tmp_path / "history.csv", [one.to_row("run")])
    (row,) = read_table(tmp_path / "history.csv")
    assert (row["run"], Round.of_row(row, int(row["seed"]))) == ("run", one)


def test_a_best_round_before_the_last_has_converged() -> None:
    history = [row("A", 1), row("A", 2, best=True), row("A", 3)]
    assert has_converged(history)
    assert not has_converged(history[:2])


def test_an_idle_round_is_no_later_round() -> None:
    """Best in round 2, the last in which the client was drawn: it has not converged."""
    assert not has_converged([row("A", 1), row("A", 2, best=True), row("A", 3, steps=0)])


def test_every_seed_must_have_converged() -> None:
    """The second seed stopped after round 2, its best; that the first went on to round 3 says nothing of it."""
    first = [row("A", 1), row("A", 2, best=True), row("A", 3)]
    assert not has_converged([*first, row("A", 1, seed=2), row("A", 2, best=True, seed=2)])


def test_only_the_named_clients_must_have_converged() -> None:
    history = [row("A", 1, best=True), row("A", 2), row("B", 1), row("B", 2, best=True)]
    assert has_converged(history, ["A"])
    assert not has_converged(history)


def test_the_rival_is_chosen_on_validation() -> None:
    """Three does best on the test examples, four on validation."""
    runs = {"five": scored(0.0), "four": scored(-1.0), "three": scored(3.0)}
    claim = Claim("five is best", "Fig. 4", "", "", kind="best threshold")
    judged = best_threshold(claim, "five", {"three": 2.2, "four": 2.1}, runs, always, 200)
    assert (judged.claim.theirs, judged.verdict) == ("four", "held")


def best(client: str, rows: list[Scored]) -> Judged:
    claim = Claim(f"{client} is best", "Fig. 7", "run", "", clients=(client,), kind="best client")
    return best_client(claim, {"run": rows}, always, 200)


def test_a_client_is_put_beside_the_best_other() -> None:
    rows = scored(5.0, "A") + scored(0.0, "B") + scored(-9.0, "C")
    judged = best("A", rows)
    assert judged.interval is not None
    assert judged.interval.value == pytest.approx(5.0)
    assert "against B" in judged.claim.remark
    assert best("Z", rows).verdict == "not run"


def wild(mean: float) -> list[Scored]:
    """Twenty meetings of C's own, 40 points above and below the mean in turn."""
    return [Scored(f"C{i}", "C", f"c{i}", 10, {"average": mean + 40.0 * (-1) ** i}) for i in range(20)]


def test_the_best_client_is_surely_above_every_other() -> None:
    """A's mean is 29.5; B has 5 less in every meeting; C has 5.1 less in the mean, but who knows."""
    judged = best("A", scored(0.0, "A") + scored(-5.0, "B") + wild(24.4))
    assert "against C" in judged.claim.remark
    assert judged.verdict == "cannot tell"


def test_one_other_that_is_surely_above_is_enough() -> None:
    """B has a point more in every meeting, whatever C has."""
    judged = best("A", scored(0.0, "A") + scored(1.0, "B") + wild(24.4))
    assert "against B" in judged.claim.remark
    assert judged.verdict == "did not hold"


def words(client: str, nouns: float, closed: float) -> list[dict[str, str]]:
    shares = {"content": 0.3, "content_given_distilled": nouns, "closed_given_not_distilled": closed}
    return [
        {"run": "run", "client": client, "share": name, "value": f"{v}", "low": f"{v - 0.01}", "high": f"{v + 0.01}"}
        for name, v in shares.items()
    ]


def of_words(metric: Metric, least: float, effect: float | None = None) -> Claim:
    return Claim("words are", "Fig. 11", "", "", metric=metric, effect=effect, kind="words", least=least)


def test_shares_of_words_are_judged_by_the_least_client() -> None:
    found = words("A", 0.95, 0.5) + words("B", 0.85, 0.4)
    nouns, closed = of_words("content_given_distilled", 0.9), of_words("closed_given_not_distilled", 0.37, effect=0.74)
    nearly = share_of_words(nouns, found, always)
    assert nearly.verdict == "did not hold"
    assert "of A, B; of all words 30% / 30% are nouns" in nearly.claim.remark
    row = claim_row(nearly, {}, "")
    assert (row["ours"], row["interval"].replace("\N{NO-BREAK SPACE}", " ")) == ("95% / 85%", "94 … 96%; 84 … 86%")
    assert share_of_words(closed, found, always).verdict == "held"
    assert claim_row(share_of_words(closed, found, always), {}, "")["paper"] == "74%"
    assert share_of_words(closed, words("A", 0.95, 0.365), always).verdict == "cannot tell"  # 37% is half
    assert share_of_words(nouns, found, lambda _run, _clients: False).verdict == "cannot tell"
    assert share_of_words(nouns, [], always).verdict == "not run"


def test_a_client_without_such_words_leaves_the_share_open() -> None:
    """B distilled every word: of none can it be said how many of the others are determiners and pronouns."""
    closed = of_words("closed_given_not_distilled", 0.37)
    found = words("A", 0.95, 0.5) + words("B", 0.85, 0.4)[:2]
    judged = share_of_words(closed, found, always)
    assert (judged.verdict, judged.claim.remark) == ("cannot tell", "of A; of B there are no such words")
    none = share_of_words(closed, words("A", 0.95, 0.5)[:2], always)
    assert (none.verdict, claim_row(none, {}, "")["ours"]) == ("cannot tell", "–")


def test_raters_preference_is_wins_less_losses() -> None:
    """Of ten examples seven are won, two lost and one tied: 50 of 100."""
    outcomes = ["win"] * 7 + ["loss"] * 2 + ["tie"]
    names = ("sheet", "rater", "item", "client", "meeting", "example", "against", "criterion", "outcome")
    rows = [
        dict(zip(names, ("s", "r", f"i{n}", "A", f"m{n}", f"e{n}", "AdaFedAvg", "c", outcome), strict=True))
        for n, outcome in enumerate(outcomes)
    ]
    above = Claim("ours is preferred", "Fig. 5", "ours", "theirs", metric="preference")
    found = preferred(above, rows, "AdaFedAvg", always, 200)
    assert found.interval is not None
    assert found.interval.value == pytest.approx(0.5)
    assert claim_row(found, {}, "")["ours"] == "+50"
    assert preferred(above, rows, "AdaFedKD", always, 200).verdict == "not run"
    assert preferred(above, [r | {"outcome": "win"} for r in rows], "AdaFedAvg", always, 200).verdict == "held"


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


def alike(rows: list[Scored]) -> Judged:
    claim = Claim("all are alike", "Fig. 6", "run", "", "little", kind="alike clients")
    return alike_clients(claim, {"run": rows}, always, 200)


def test_clients_are_alike_within_half_a_point() -> None:
    """Both have the same twenty meetings, so that their scores differ surely: by 0, or by 30."""
    near, far = (alike(scored(0.0) + scored(shift, "B")) for shift in (0.0, 30.0))
    assert near.interval is not None
    assert far.interval is not None
    assert (near.interval.value, far.interval.value) == (pytest.approx(0.0), pytest.approx(30.0))
    assert (near.verdict, far.verdict) == ("held", "did not hold")
    assert far.claim.remark.startswith("B less A, with an interval for all 1 pairs")
    judged = alike([row for shift, name in ((0.0, "A"), (0.0, "B"), (0.4, "C")) for row in spread(shift, name)])
    assert judged.interval is not None
    half = (judged.interval.high - judged.interval.low) / 2
    assert half == pytest.approx(2.394 * judged.interval.standard_error, rel=1e-3), "5% over three pairs"
    assert alike([]).verdict == "not run"


def test_clients_of_which_one_is_unknown_are_not_alike() -> None:
    """A and B are 0.2 apart, surely; C is between them in the mean, and nobody knows where."""
    judged = alike(scored(0.0) + scored(0.2, "B") + wild(29.6))
    assert " C" in f" {judged.claim.remark}"
    assert judged.verdict == "cannot tell"


def test_one_pair_surely_apart_is_enough() -> None:
    """B is a point above A in every meeting; C, in the mean below both, may be anywhere."""
    judged = alike(scored(0.0) + scored(1.0, "B") + wild(29.0))
    assert judged.claim.remark.startswith("B less A")
    assert judged.verdict == "did not hold"


def test_as_good_is_ten_of_a_hundred_below_at_most() -> None:
    """All tied: no wins less no losses, surely above −10; all lost: surely below."""
    names = ("sheet", "rater", "item", "client", "meeting", "example", "against", "criterion")
    pairs = [
        dict(zip(names, ("s", "r", f"i{n}", "A", f"m{n}", f"e{n}", "AdaCentralized", "c"), strict=True))
        for n in range(4)
    ]
    as_good = Claim("ours is as good", "Fig. 5", "ours", "theirs", "comparable", "preference")
    verdicts = [
        preferred(as_good, [pair | {"outcome": outcome} for pair in pairs], "AdaCentralized", always, 200).verdict
        for outcome in ("tie", "loss")
    ]
    assert verdicts == ["held", "did not hold"]


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
