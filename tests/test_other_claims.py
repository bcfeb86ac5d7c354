"""Claims that are not one run above another: the best threshold or client, clients alike, words, raters."""

from __future__ import annotations

import pytest
from made_scores import always, scored, spread, wild

from pipeline.evaluation.scores import Scored
from pipeline.report.claim_rows import claim_row
from pipeline.report.claims.claim import Claim, Judged, Metric
from pipeline.report.claims.other_claims import alike_clients, best_client, best_threshold, preferred, share_of_words


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
