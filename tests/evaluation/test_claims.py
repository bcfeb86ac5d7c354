"""Claims and their words, by rules that were fixed beforehand, worked by hand."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from made_scores import scored, spread

from pipeline.evaluation.claims import Claim, Judged, Word, judge, word_of
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Scored

Runs = dict[str, Sequence[Scored]]


def interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, (high - low) / 4)


@pytest.mark.parametrize(
    ("low", "high", "p", "effect", "word"),
    [
        (0.10, 1.20, 0.01, 0.93, "supported"),
        (0.10, 0.50, 0.01, 0.93, "supported"),  # 0.50 is above half of 0.93
        (0.10, 0.40, 0.01, 0.93, "supported, smaller"),
        (0.10, 1.20, 0.05, 0.93, "supported"),  # 0.05 is small enough
        (0.10, 1.20, 0.06, 0.93, "undecided"),
        (
            0.10,
            0.40,
            0.06,
            0.93,
            "undecided",
        ),  # a gain that is not sure is not excluded either: its lower end is above 0
        (-0.09, 0.29, 0.30, 0.93, "excluded"),
        (-0.09, 0.29, 0.30, 0.40, "undecided"),  # 0.29 is above half of 0.40
        (-0.09, 0.20, 0.30, 0.40, "undecided"),  # just half of it
        (-0.09, 0.19, 0.30, 0.40, "excluded"),
        (-0.90, -0.10, 0.01, 0.93, "excluded"),  # surely worse
        (0.00, 1.20, 0.01, 0.93, "undecided"),
        (0.00, 0.00, 1.00, 0.93, "excluded"),  # one adapter in both runs
        (-0.001, 0.011, 0.30, 0.02, "undecided"),  # nats: half of the effect is 0.010
        (-0.001, 0.009, 0.30, 0.02, "excluded"),
        (0.001, 0.002, 0.01, 0.005, "supported, smaller"),
    ],
)
def test_an_interval_its_p_and_the_effect_give_a_word(
    low: float, high: float, p: float, effect: float, word: Word
) -> None:
    assert word_of(interval(low, high), effect, p) == word


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.49, 0.80, "supported"),
        (-0.50, 0.80, "undecided"),
        (-0.60, 0.80, "undecided"),
        (-0.90, -0.50, "undecided"),
        (-0.90, -0.51, "excluded"),
        (0.20, 0.80, "supported"),
    ],
)
def test_no_worse_than_half_a_point_below_is_judged_by_the_margin_alone(low: float, high: float, word: Word) -> None:
    """Claim 7: whatever its p is, and whether the gain is above 0."""
    for p in (0.001, 0.9):
        assert word_of(interval(low, high), effect=-0.5, p=p, margin=0.5) == word


def claim(number: int, ours: str, theirs: str, family: str = "", gate: bool = False, **effects: float) -> Claim:
    """By 0.93 points of average ROUGE, unless said."""
    return Claim(
        number=number,
        text=f"{ours} is better than {theirs}",
        ours=ours,
        theirs=theirs,
        effects=effects or {"average": 0.93},
        family=family,
        gate=gate,
    )


def judged(
    claims: Sequence[Claim], runs: Runs, unfinished: Collection[str] = (), seeds: Sequence[Runs] | None = None
) -> list[Judged]:
    """At one seed, unless said."""
    return judge(
        claims,
        runs,
        dict(enumerate([runs] if seeds is None else seeds)),
        lambda run: run not in unfinished,
        4000,
        runs=len(seeds) if seeds else 1,
    )


ONE = claim(1, "ours", "theirs")


def test_a_claim_is_put_to_its_two_runs() -> None:
    """1.5 points more in each of twenty meetings: no signs but the observed ones are as extreme, p is 1 / 4001."""
    (one,) = judged([ONE], {"ours": scored(1.5), "theirs": scored(0.0)})
    assert one.gain is not None
    assert one.gain.value == pytest.approx(1.5)
    assert one.p == one.p_holm == pytest.approx(1 / 4001)
    assert (one.word, one.effect, one.why, one.shared) == ("supported", 0.93, "", ())


@pytest.mark.parametrize(
    ("gain", "word"), [(1.5, "supported"), (0.4, "supported, smaller"), (0.0, "excluded"), (-1.0, "excluded")]
)
def test_a_sure_gain_is_supported_and_a_small_one_smaller(gain: float, word: Word) -> None:
    """0.4 is below half of 0.93."""
    (one,) = judged([ONE], {"ours": scored(gain), "theirs": scored(0.0)})
    assert one.word == word


def wavering(gain: float, size: float) -> list[Scored]:
    """A gain that is `size` more and less in turn."""
    return [
        Scored(
            r.id, r.client, r.meeting, r.tokens, r.values | {"average": r.values["average"] + gain + size * (-1) ** i}
        )
        for i, r in enumerate(scored(0.0))
    ]


def test_the_same_small_gain_is_excluded_or_undecided_by_the_effect() -> None:
    """About +0.10 (−0.11 … 0.31): surely below half of 0.93, and perhaps half of 0.4.

    A standard error of 0.10 over twenty meetings is one of 0.44 a meeting; t of 19 degrees is 2.09.
    """
    runs: Runs = {"ours": wavering(0.10, 0.44), "theirs": scored(0.0)}
    (large,), (small,) = (judged([claim(1, "ours", "theirs", average=effect)], runs) for effect in (0.93, 0.4))
    assert large.gain == small.gain
    assert large.gain is not None
    assert large.gain.low == pytest.approx(-0.11, abs=0.03)
    assert large.gain.high == pytest.approx(0.31, abs=0.03)
    assert (large.word, small.word) == ("excluded", "undecided")


def test_less_loss_is_a_gain() -> None:
    """100 nats and 110 over ten tokens: one nat a token less, and a gain of 1.0; the other way round it is a loss."""

    def rows(loss: float) -> list[Scored]:
        return [Scored(f"e{i}", "A", f"m{i}", 10, {"loss": loss + i}) for i in range(20)]

    runs: Runs = {"ours": rows(100.0), "theirs": rows(110.0)}
    less, more = judged([claim(1, "ours", "theirs", loss=0.02), claim(2, "theirs", "ours", loss=0.02)], runs)
    assert less.gain is not None
    assert more.gain is not None
    assert (less.gain.value, more.gain.value) == (pytest.approx(1.0), pytest.approx(-1.0))
    assert (less.word, more.word) == ("supported", "excluded")


def test_a_claim_has_a_word_on_each_of_its_endpoints() -> None:
    """A point of ROUGE more; the losses are the same."""
    both = claim(1, "ours", "theirs", average=0.93, loss=0.02)
    found = judged([both], {"ours": scored(1.0), "theirs": scored(0.0)})
    assert [(one.metric, one.effect, one.word) for one in found] == [
        ("average", 0.93, "supported"),
        ("loss", 0.02, "excluded"),
    ]


def test_a_gain_is_the_mean_over_the_clients_that_both_runs_have() -> None:
    """1 point at A and 3 at B: 2; C is of one run alone."""
    ours = spread(1.0, "A") + spread(3.0, "B") + spread(90.0, "C")
    (one,) = judged([ONE], {"ours": ours, "theirs": spread(0.0, "A") + spread(0.0, "B")})
    assert one.gain is not None
    assert one.gain.value == pytest.approx(2.0)


@pytest.mark.parametrize(
    "runs",
    [
        {"ours": scored(1.0)},
        {"theirs": scored(1.0)},
        {"ours": scored(1.0, "A"), "theirs": scored(0.0, "B")},
        {"ours": scored(1.0), "theirs": [Scored("A0", "A", "m0", 10, {"loss": 9.0})]},
    ],
    ids=["no theirs", "no ours", "no common client", "no summaries"],
)
def test_what_was_not_run_or_not_written_is_not_run(runs: Runs) -> None:
    (one,) = judged([ONE], runs)
    assert (one.word, one.gain, one.p, one.p_holm) == ("not run", None, None, None)


def test_a_run_that_has_not_converged_leaves_its_claims_undecided() -> None:
    """The gain stands there all the same, and which run it was."""
    runs: Runs = {"ours": scored(1.5), "theirs": scored(0.0), "third": scored(0.0)}
    two = [ONE, claim(2, "third", "theirs")]
    ours, third = judged(two, runs, unfinished=["ours"])
    assert (ours.word, ours.why) == ("undecided", "not converged: ours")
    assert ours.gain is not None
    assert (third.word, third.why) == ("excluded", "")
    both = judged(two, runs, unfinished=["ours", "theirs"])
    assert [one.why for one in both] == ["not converged: ours, theirs", "not converged: theirs"]


def over(*gains: float) -> tuple[Runs, list[Runs]]:
    """Two runs at seeds with these gains: (over all seeds, each alone)."""
    seeds: list[Runs] = [{"ours": scored(gain), "theirs": scored(0.0)} for gain in gains]
    return {"ours": scored(sum(gains) / len(gains)), "theirs": scored(0.0)}, seeds


@pytest.mark.parametrize(
    ("gains", "word", "why"),
    [
        ((2.0, 1.0, 0.5), "supported", ""),
        ((0.3, 0.4, 0.2), "supported, smaller", ""),
        ((2.0, 1.0, -0.1), "undecided", "not ahead in every run"),
        ((2.0, 1.0, 0.0), "undecided", "not ahead in every run"),
        ((0.6, -0.1, 0.4), "undecided", "not ahead in every run"),  # else it were supported, smaller
        ((0.5, -1.0, -0.5), "excluded", ""),
    ],
)
def test_a_gain_is_supported_if_it_is_one_at_every_seed(gains: Sequence[float], word: Word, why: str) -> None:
    """Over three seeds it is their mean; what is excluded needs no seed to be."""
    (one,) = judged([ONE], over(*gains)[0], seeds=over(*gains)[1])
    assert (one.word, one.why) == (word, why)


def test_a_margin_is_kept_over_all_seeds_together() -> None:
    """0.1 above at one seed and 0.7 below at another: 0.3 below, of 0.5 that it may be."""
    margin = Claim(number=7, text="", ours="ours", theirs="theirs", effects={"average": -0.5}, margin=0.5)
    runs, seeds = over(0.1, -0.7)
    (one,) = judged([margin], runs, seeds=seeds)
    assert one.word == "supported"


def test_before_all_runs_are_there_nothing_is_decided() -> None:
    """At the third seed one of the two was not made."""
    runs, seeds = over(1.0, 1.0)
    (one,) = judged([ONE], runs, seeds=[*seeds, {"theirs": scored(0.0)}])
    assert (one.word, one.why) == ("undecided", "2 of 3 runs")
    assert one.by_run == {0: pytest.approx(1.0), 1: pytest.approx(1.0)}


def test_a_gate_that_is_not_ahead_at_every_seed_is_shut() -> None:
    pooled: list[Runs] = [{"centralized": scored(gain), "single": scored(0.0)} for gain in (3.0, -1.0)]
    both: Runs = {"centralized": scored(1.0), "single": scored(0.0), "ours": scored(1.5), "theirs": scored(0.0)}
    gate = claim(0, "centralized", "single", gate=True)
    found = judged([gate, ONE], both, seeds=[{**both, **own} for own in pooled])
    assert [one.why for one in found] == ["not ahead in every run", "the gate is not supported"]


def few(meetings: int, gain: float = 1.0) -> list[Scored]:
    """As many meetings with one gain: all signs agree in 2 of 2ⁿ draws."""
    return scored(gain)[:meetings]


def test_holm_runs_over_a_family() -> None:
    """Gains in 6, 8 and 9 meetings have p of 1/32, 1/128 and 1/256: in a family of three 1/32, 2/128 and 3/256.

    A fourth that gains nothing makes them 2/32, 3/128 and 4/256: the first is above 0.05, the others stay below.
    """
    runs: Runs = {"six": few(6), "eight": few(8), "nine": few(9), "same": scored(0.0), "theirs": scored(0.0)}
    family = [claim(n, run, "theirs", "f") for n, run in enumerate(("six", "eight", "nine"), 1)]
    three, four = judged(family, runs), judged([*family, claim(4, "same", "theirs", "f")], runs)
    assert [one.p for one in three] == [pytest.approx(p, abs=0.008) for p in (1 / 32, 1 / 128, 1 / 256)]
    p = [one.p or 0.0 for one in three]
    assert [one.p_holm for one in three] == [p[0], 2 * p[1], 3 * p[2]]
    assert [one.p_holm for one in four] == [2 * p[0], 3 * p[1], 4 * p[2], 1.0]
    assert [one.word for one in three] == ["supported"] * 3
    assert [one.word for one in four] == ["undecided", "supported", "supported", "excluded"]


def test_the_level_of_a_family_is_that_of_its_open_claims() -> None:
    """Of four claims two are below 0.05 by their p: the other two share it."""
    runs: Runs = {"six": few(6), "eight": few(8), "nine": few(9), "same": scored(0.0), "theirs": scored(0.0)}
    family = [claim(n, run, "theirs", "f") for n, run in enumerate(("six", "eight", "nine", "same"), 1)]
    assert {one.level for one in judged(family, runs)} == {0.05 / 2}
    assert {one.level for one in judged([claim(1, "same", "theirs")], runs)} == {0.05}


def test_holm_runs_over_each_endpoint_and_each_family_alone() -> None:
    """Of four claims two are a family; each has another on the loss, where nothing is gained: p is 1."""
    runs: Runs = {"six": few(6), "seven": few(7), "theirs": scored(0.0)}
    effects = {"average": 0.93, "loss": 0.02}
    claims = [
        claim(1, "six", "theirs", "f", **effects),
        claim(2, "seven", "theirs", "f", **effects),
        claim(3, "six", "theirs", "g", **effects),
        claim(4, "six", "theirs", **effects),
    ]
    found = {(one.claim.number, one.metric): one for one in judged(claims, runs)}
    six, seven = found[1, "average"].p, found[2, "average"].p
    assert six is not None
    assert seven is not None
    holms = [found[number, "average"].p_holm for number in (1, 2, 3, 4)]
    assert holms == [pytest.approx(max(six, 2 * seven)), pytest.approx(2 * seven), six, six]
    assert {one.p_holm for (_, metric), one in found.items() if metric == "loss"} == {1.0}


def test_a_claim_that_was_not_run_counts_in_its_family() -> None:
    """Of two one is left, and its p is doubled: 2/32 as if both had been run."""
    family = [claim(1, "ours", "theirs", "f"), claim(2, "gone", "theirs", "f")]
    ours, gone = judged(family, {"ours": few(6), "theirs": scored(0.0)})
    assert ours.p is not None
    assert ours.p_holm == 2 * ours.p
    assert gone.word == "not run"


GATE = claim(0, "centralized", "single", gate=True, average=1.81, loss=0.02)
GATED = claim(1, "ours", "theirs", average=0.93, loss=0.02)


def of_loss(shift: float, loss: float) -> list[Scored]:
    """Average ROUGE and the loss of every example shifted."""
    return [Scored(r.id, r.client, r.meeting, r.tokens, r.values | {"loss": 9.0 + loss}) for r in scored(shift)]


@pytest.mark.parametrize(
    ("gain", "loss", "words"),
    [
        (2.0, -1.0, ["supported", "supported"]),
        (0.5, -1.0, ["supported", "supported"]),  # the gate is supported, smaller: 0.5 is below half of 1.81
        (0.0, -1.0, ["undecided", "supported"]),
        (2.0, 1.0, ["supported", "undecided"]),
        (-2.0, 1.0, ["undecided", "undecided"]),
    ],
)
def test_the_gate_shuts_the_others_on_its_endpoint_alone(gain: float, loss: float, words: list[Word]) -> None:
    """What pooling gains over training alone, in ROUGE and in loss; ours gains in both."""
    runs: Runs = {
        "centralized": of_loss(gain, loss),
        "single": of_loss(0.0, 0.0),
        "ours": of_loss(2.0, -1.0),
        "theirs": of_loss(0.0, 0.0),
    }
    found = judged([GATE, GATED], runs)
    gate, ours = found[:2], found[2:]
    assert [one.word for one in ours] == words
    assert [one.why for one in ours] == ["the gate is not supported" if w == "undecided" else "" for w in words]
    assert [one.word in ("supported", "supported, smaller") for one in gate] == [w == "supported" for w in words]


def test_a_shut_gate_shuts_whatever_word_there_was() -> None:
    """Also what is excluded, and what is no worse than a margin; what was not run stays not run."""
    runs: Runs = {"centralized": scored(0.0), "single": scored(0.0), "ours": scored(-1.0), "theirs": scored(0.0)}
    margin = Claim(number=7, text="", ours="theirs", theirs="single", effects={"average": -0.5}, margin=0.5)
    gate = claim(0, "centralized", "single", gate=True)
    found = judged([gate, ONE, margin, claim(2, "gone", "theirs")], runs)
    assert [one.word for one in found] == ["excluded", "undecided", "undecided", "not run"]
    opened = judged([ONE, margin], runs)
    assert [one.word for one in opened] == ["excluded", "supported"]


@pytest.mark.parametrize(
    ("runs", "unfinished"), [({}, []), ({"centralized": scored(5.0), "single": scored(0.0)}, ["centralized"])]
)
def test_a_gate_that_is_not_known_is_shut(runs: Runs, unfinished: list[str]) -> None:
    """It was not run, or has not converged."""
    both: Runs = {**runs, "ours": scored(1.5), "theirs": scored(0.0)}
    gate = claim(0, "centralized", "single", gate=True)
    one = judged([gate, ONE], both, unfinished)[1]
    assert (one.word, one.why) == ("undecided", "the gate is not supported")


def test_every_reason_is_told() -> None:
    """One gains 1 and loses 0.5, which were *supported, smaller*; at the third seed it was not made."""
    runs, seeds = over(1.0, -0.5)
    (one,) = judged([ONE], runs, ["theirs"], [*seeds, {"theirs": scored(0.0)}])
    assert one.why == "not converged: theirs; 2 of 3 runs; not ahead in every run"


def test_a_run_that_has_not_converged_is_told_with_the_gate() -> None:
    runs: Runs = {"centralized": scored(0.0), "single": scored(0.0), "ours": scored(1.5), "theirs": scored(0.0)}
    found = judged([claim(0, "centralized", "single", gate=True), ONE], runs, ["ours"])
    assert found[1].why == "not converged: ours; the gate is not supported"


def losing(loss: float, client: str) -> list[Scored]:
    """A client's twenty examples under an adapter that is known by its losses."""
    return [Scored(r.id, client, r.meeting, r.tokens, r.values | {"loss": loss}) for r in spread(0.0, client)]


def test_two_claims_that_rest_on_the_same_adapters_say_so() -> None:
    """At A `ours` is `other`, to the last bit of every loss, at B it is not; theirs is one run in both claims."""
    runs: Runs = {
        "ours": losing(8.0, "A") + losing(7.0, "B"),
        "other": losing(8.0, "A") + losing(7.0 + 1e-12, "B"),
        "theirs": losing(9.0, "A") + losing(9.0, "B"),
    }
    found = judged([ONE, claim(2, "other", "theirs"), claim(3, "ours", "other")], runs)
    assert [one.shared for one in found] == [("claim 2 at A",), ("claim 1 at A",), ()]


def test_one_training_under_two_names_is_one_comparison_at_all_clients() -> None:
    rows = losing(8.0, "A") + losing(7.0, "B")
    theirs = losing(9.0, "A") + losing(9.0, "B")
    found = judged([ONE, claim(2, "twin", "theirs")], {"ours": rows, "twin": rows, "theirs": theirs})
    assert [one.shared for one in found] == [("claim 2 at A, B",), ("claim 1 at A, B",)]


def test_a_margin_is_a_distance() -> None:
    """So much worse ours may be; −0.5 would mean half a point better."""
    with pytest.raises(ValueError, match="margin"):
        Claim(number=7, text="", ours="a", theirs="b", effects={"average": -0.5}, margin=-0.5)


def test_a_claim_names_an_effect() -> None:
    with pytest.raises(ValueError, match="effects"):
        Claim(number=1, text="", ours="a", theirs="b", effects={})
