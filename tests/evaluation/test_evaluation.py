"""Figures, intervals and tests, with numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.evaluation.intervals import Clusters, Interval, Samples, bootstrap
from pipeline.evaluation.scores import (
    Comparison,
    Figures,
    Scored,
    compare,
    differences,
    figures_of,
    over_seeds,
    significance,
)
from pipeline.evaluation.significance import holm, sign_flip


def test_clusters_sum_examples_by_meeting() -> None:
    clusters = Clusters.of(["b", "a", "b"], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    assert clusters.numerator.tolist() == [2.0, 4.0]
    assert clusters.denominator.tolist() == [1.0, 2.0]
    assert clusters.ratio() == 2.0


def test_the_mean_over_clients_weighs_clients_alike() -> None:
    """Client a has one example of 0, client b three of 9: the mean over clients is 4.5, over examples 6.75."""
    a, b = Clusters.of(["l"], [0.0], [1.0]), Clusters.of(["m", "m", "n"], [9.0] * 3, [1.0] * 3)
    assert bootstrap({"a": a, "b": b}, 200).value == 4.5


def test_an_interval_covers_its_value_and_repeats() -> None:
    rng = np.random.default_rng(0)
    clusters = Clusters.of([f"m{i % 12}" for i in range(60)], rng.normal(20, 5, 60), [1.0] * 60)
    first, second = bootstrap({"a": clusters}, 2000), bootstrap({"a": clusters}, 2000)
    assert first == second
    assert first.low < first.value < first.high


def test_an_interval_has_about_its_level() -> None:
    """Of 200 experiments with a known mean, about 95% of intervals should hold it (BCa of 20 meetings: 88% or more)."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        clusters = Clusters.of([f"m{i}" for i in range(20)], rng.normal(10, 3, 20), [1.0] * 20)
        interval = bootstrap({"a": clusters}, 400)
        hits += interval.low <= 10 <= interval.high
    assert 176 <= hits <= 200


def test_queries_of_one_meeting_are_not_independent() -> None:
    """The same 24 scores: as 24 meetings the interval is narrower than as 4 meetings of 6 equal scores."""
    scores = [float(i // 6) for i in range(24)]
    apart = bootstrap({"a": Clusters.of([str(i) for i in range(24)], scores, [1.0] * 24)}, 2000)
    together = bootstrap({"a": Clusters.of([str(i // 6) for i in range(24)], scores, [1.0] * 24)}, 2000)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_a_meeting_that_clients_share_is_drawn_once_for_all_of_them() -> None:
    """Two clients with the same scores on the same meetings know no more than one of them does."""
    scores = np.random.default_rng(2).normal(20, 5, 12)
    one, other = (Clusters.of([f"{who}{i:02}" for i in range(12)], scores, [1.0] * 12) for who in ("a", "b"))
    alone, shared, apart = (
        bootstrap(clients, 4000) for clients in ({"a": one}, {"a": one, "b": one}, {"a": one, "b": other})
    )
    assert shared.standard_error == pytest.approx(alone.standard_error, rel=0.05)
    assert apart.standard_error == pytest.approx(alone.standard_error / 2**0.5, rel=0.05)


def test_a_client_without_a_drawn_meeting_keeps_its_own_figure() -> None:
    """Of two meetings the one that `a` lacks is drawn twice in a quarter of the resamples: `a` stays at 4."""
    a, b = Clusters.of(["m"], [4.0], [1.0]), Clusters.of(["m", "n"], [4.0, 4.0], [1.0, 1.0])
    interval = bootstrap({"a": a, "b": b}, 200)
    assert (interval.low, interval.value, interval.high) == (4.0, 4.0, 4.0)


def test_no_spread_gives_a_point() -> None:
    interval = bootstrap({"a": Clusters.of(["m", "n"], [3.0, 3.0], [1.0, 1.0])}, 200)
    assert (interval.low, interval.value, interval.high) == (3.0, 3.0, 3.0)


def test_bca_agrees_with_scipy() -> None:
    from scipy.stats import bootstrap as scipy_bootstrap

    data = np.random.default_rng(3).exponential(2.0, 25)
    ours = bootstrap({"a": Clusters.of([f"m{i:02}" for i in range(25)], data, [1.0] * 25)}, 20000)
    theirs = scipy_bootstrap((data,), np.mean, n_resamples=20000, method="BCa", rng=np.random.default_rng(0))
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.05)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.05)


def test_bca_of_two_clients_agrees_with_scipy() -> None:
    """Six skewed meetings beside twenty-five: each client's own mean is left out of the other's skew."""
    from scipy.stats import bootstrap as scipy_bootstrap

    draw = np.random.default_rng(5)
    few, many = draw.exponential(3.0, 6), draw.exponential(2.0, 25)
    clients = {
        name: Clusters.of([f"{name}{i:02}" for i in range(len(data))], data, [1.0] * len(data))
        for name, data in (("few", few), ("many", many))
    }
    ours = bootstrap(clients, 40000)
    theirs = scipy_bootstrap(
        (few, many),
        lambda x, y, axis=-1: (x.mean(axis=axis) + y.mean(axis=axis)) / 2,
        n_resamples=40000,
        method="BCa",
        rng=np.random.default_rng(0),
    )
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.05)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.05)


def test_sign_flip_by_hand() -> None:
    """Three meetings, all differences +1: |Δ*| ≥ 1 only if all signs agree, 2 of 8; p is near 1/4."""
    clusters = Clusters.of(["a", "b", "c"], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert sign_flip({"c": clusters}, 20000) == pytest.approx(0.25, abs=0.02)


def test_sign_flip_is_of_the_mean_over_clients() -> None:
    """Two meetings of +1 and, with another client, one of +3: only if all three signs agree is |Δ*| ≥ 2; p is 1/4."""
    clients = {"a": Clusters.of(["m", "n"], [1.0, 1.0], [1.0, 1.0]), "b": Clusters.of(["o"], [3.0], [1.0])}
    assert sign_flip(clients, 20000) == pytest.approx(0.25, abs=0.02)


def test_a_meeting_that_clients_share_has_one_sign() -> None:
    """Two clients with the same two meetings of +1: all agree in 2 of 4 draws; flipped apart it would be 2 of 16."""
    shared = Clusters.of(["m", "n"], [1.0, 1.0], [1.0, 1.0])
    assert sign_flip({"a": shared, "b": shared}, 20000) == pytest.approx(0.5, abs=0.02)


def test_six_meetings_cannot_reach_one_percent() -> None:
    clusters = Clusters.of(list("abcdef"), [1.0] * 6, [1.0] * 6)
    assert sign_flip({"c": clusters}, 20000) > 0.01


def test_no_difference_has_p_one() -> None:
    assert sign_flip({"c": Clusters.of(["a", "b"], [0.0, 0.0], [1.0, 1.0])}, 500) == 1.0


def test_holm_by_hand() -> None:
    """0.01·4, then max(0.04, 0.02·3), max(0.06, 0.03·2), max(0.06, 0.5·1)."""
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([]) == []


def example(identity: str, meeting: str, rouge: float, loss: float, tokens: int = 10) -> dict[str, object]:
    scores = dict.fromkeys(("average", "rouge1"), rouge)
    return {"id": identity, "client": "A", "meeting": meeting, "tokens": tokens, "loss_sum": loss, **scores}


def test_seeds_are_averaged_an_example_first() -> None:
    rows = over_seeds([[example("x", "m", 10, 20)], [example("x", "m", 30, 40)]])
    assert rows[0].values == {"average": 20.0, "rouge1": 20.0, "loss": 30.0}


def test_a_run_that_wrote_nothing_has_but_its_loss() -> None:
    scored = {"id": "x", "client": "A", "meeting": "m", "tokens": 10, "loss_sum": 20.0}
    assert over_seeds([[scored]]) == [Scored("x", "A", "m", 10, {"loss": 20.0})]


def test_loss_is_a_mean_over_tokens_rouge_over_examples() -> None:
    """30 nats over 10 tokens and 30 over 20: 60 / 30."""
    rows = over_seeds([[example("x", "m", 10, 30, tokens=10), example("y", "n", 20, 30, tokens=20)]])
    figures = figures_of(rows, 200)
    assert figures["A"].metrics["loss"].value == 2.0
    assert figures["A"].metrics["rouge1"].value == 15.0
    assert figures["A"].examples == figures["mean"].examples == 2


def test_figures_are_of_each_client_and_of_their_mean() -> None:
    """B has one example of 40, A two of 10: the mean over clients is 25, over examples 20."""
    rows = [
        Scored(f"{c}{i}", c, f"{c}{i}", 1, {"average": v}) for c, i, v in (("A", 0, 10), ("A", 1, 10), ("B", 0, 40))
    ]
    figures = figures_of(rows, 200)
    assert {client: (own.examples, own.metrics["average"].value) for client, own in figures.items()} == {
        "A": (2, 10.0),
        "B": (1, 40.0),
        "mean": (3, 25.0),
    }


def test_figures_are_written_to_four_digits() -> None:
    """Each with its interval and its standard error; the losses of other models are numbers."""
    figures = Figures(3, {"loss": Interval(2.00004, 1.99996, 2.1, 0.05)}, {"last": 2.123456})
    assert figures.to_json() == {
        "loss": {"value": 2.0, "low": 2.0, "high": 2.1, "standard_error": 0.05},
        "last_loss": 2.1235,
    }


def eight(shift: float, ids: range = range(8)) -> list[Scored]:
    """Eight examples, each of a meeting of its own."""
    return over_seeds([[example(str(i), f"m{i}", 9 + 10 * i + shift, 5 - shift) for i in ids]])


def compared(scored: dict[str, list[Scored]], family: list[str], others: list[str]) -> list[Comparison]:
    return compare(scored, "ours", family, others, "average", Samples(200, 2000))


def test_a_comparison_is_paired() -> None:
    """A point more in each of eight meetings: all signs agree in 2 of 256 draws, p is near 0.008."""
    ours, theirs = eight(1), eight(0)
    assert {row.values["average"] for row in differences(ours, theirs)} == {1}
    mean, client = compared({"ours": ours, "theirs": theirs}, ["theirs"], [])
    assert (mean.run, mean.against, mean.client, mean.difference.ends) == ("ours", "theirs", "mean", (1.0, 1.0))
    assert mean.difference.value == 1.0
    assert mean.p == mean.p_holm < 0.02
    assert (client.client, client.p_holm) == ("A", None)


def test_a_comparison_is_over_the_examples_and_scores_that_both_have() -> None:
    """Ours lacks two of theirs, and theirs has no ROUGE-1."""
    ours = eight(1, range(6))
    theirs = [Scored(r.id, r.client, r.meeting, r.tokens, {"average": r.values["average"]}) for r in eight(0)]
    found = differences(ours, theirs)
    assert [row.id for row in found] == [str(i) for i in range(6)]
    assert {tuple(row.values) for row in found} == {("average",)}


def test_holm_runs_over_the_comparisons_named_in_advance() -> None:
    """Two of them: the smaller p is doubled; another run is compared without an adjustment."""
    scored = {"ours": eight(1), "sure": eight(0), "same": eight(1), "other": eight(0)}
    found = {one.against: one for one in compared(scored, ["sure", "same"], ["other"]) if one.client == "mean"}
    assert found["sure"].p_holm == pytest.approx(2 * found["sure"].p)
    assert (found["same"].p, found["same"].p_holm) == (1.0, 1.0)
    assert (found["other"].p, found["other"].p_holm) == (found["sure"].p, None)


def test_every_run_is_compared_and_tested_if_it_was_named_in_advance() -> None:
    """AdaFedProx is none of those; a run that was not made is no comparison."""
    scored = {"ours": eight(1), "avg": eight(0), "local": eight(0.5), "prox": eight(0)}
    found = significance(scored, "ours", {"avg", "local", "kd"}, ["average", "loss"], Samples(200, 200))
    over_all = [one for one in found if one.client == "mean"]
    assert [(one.metric, one.against, one.p_holm is None) for one in over_all] == [
        (metric, against, against == "prox") for metric in ("average", "loss") for against in ("avg", "local", "prox")
    ]
    assert over_all[3].difference.value == pytest.approx(-0.1), "a nat less over ten tokens"


def test_what_could_have_been_seen_is_2_8_standard_errors() -> None:
    one = Comparison("average", "a", "b", "mean", Interval(1.00004, 0.5, 1.5, 0.25), 0.0123456, None)
    assert one.smallest_detectable == pytest.approx(0.7)
    row = one.to_row()
    assert (row["difference"], row["low"], row["high"], row["p"], row["p_holm"]) == (1.0, 0.5, 1.5, 0.01235, None)


def test_test_sets_that_are_drawn_anew_are_joined() -> None:
    """Seed 2 tests another example, and one of the first seed's with another client: each counts where it was held."""
    first = [example("x", "m", 10, 20)]
    second = [example("y", "m", 30, 40), example("x", "m", 50, 60) | {"client": "B"}]
    rows = over_seeds([first, second])
    assert [(row.client, row.id, row.values["rouge1"]) for row in rows] == [
        ("A", "x", 10),
        ("A", "y", 30),
        ("B", "x", 50),
    ]
