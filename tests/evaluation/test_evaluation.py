"""Scores, intervals and tests, with numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import QuorumError
from pipeline.evaluation.intervals import Clusters, bootstrap
from pipeline.evaluation.scores import METRICS, Scored, compare, differences, intervals_of, over_seeds
from pipeline.evaluation.significance import holm, sign_flip
from pipeline.runs.results import Results, side_by_side
from pipeline.tasks.rouge import rouge_of
from pipeline.tasks.surface import length, repetition


def test_rouge_by_hand() -> None:
    """Reference `the cat sat`, prediction `the cat`: R-1 has P = 1, R = 2/3, F1 = 0.8; R-2 P = 1, R = 1/2, F1 = 2/3."""
    row = rouge_of(["the cat sat"], ["the cat"], use_stemmer=False)[0]
    assert row["rouge1"] == pytest.approx(80.0)
    assert row["rouge2"] == pytest.approx(200 / 3)
    assert row["rougeL"] == pytest.approx(80.0)
    assert row["average"] == pytest.approx((80 + 200 / 3 + 80) / 3)


def test_a_rouge_that_rouge_score_does_not_give_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.tasks.rouge.TOLERANCE", -1.0)
    with pytest.raises(QuorumError, match=r"rouge1 of pair 1 is .* by rouge-score-rs and .* by rouge_score"):
        rouge_of(["the cat sat"], ["the cat"], use_stemmer=False)


def test_rouge_l_and_lsum_differ_by_lines() -> None:
    """Lines in another order: one common subsequence over the whole text, both lines for the union of lines."""
    row = rouge_of(["a b\nc d"], ["c d\na b"], use_stemmer=False)[0]
    assert row["rougeL"] == pytest.approx(50.0)
    assert row["rougeLsum"] == pytest.approx(100.0)


def test_stemming_is_a_choice() -> None:
    assert rouge_of(["meetings"], ["meeting"], use_stemmer=False)[0]["rouge1"] == 0
    assert rouge_of(["meetings"], ["meeting"], use_stemmer=True)[0]["rouge1"] == 100


def test_an_empty_prediction_scores_zero() -> None:
    assert rouge_of(["a b"], [""], use_stemmer=False)[0]["average"] == 0


def test_repetition_counts_four_grams_seen_before() -> None:
    """`a b c d a b c d` has five 4-grams, abcd twice: 1/5."""
    assert repetition("a b c d a b c d") == pytest.approx(20.0)
    assert repetition("a b c") == 0
    assert length(" two  words ") == 2


def test_similarity_of_equal_texts_is_one() -> None:
    from pipeline.tasks.similarity import similarities

    same, other = similarities(["The board met.", "The board met."], ["The board met.", "Bananas are yellow."])
    assert same == pytest.approx(1.0, abs=1e-5)
    assert other < 0.5


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


TEXT_METRICS = tuple(metric for metric in METRICS if metric != "loss")


def example(identity: str, meeting: str, rouge: float, loss: float, tokens: int = 10) -> dict[str, object]:
    scores = dict.fromkeys(TEXT_METRICS, rouge)
    return {"id": identity, "client": "A", "meeting": meeting, "tokens": tokens, "loss_sum": loss, **scores}


def test_seeds_are_averaged_an_example_first() -> None:
    rows = over_seeds([[example("x", "m", 10, 20)], [example("x", "m", 30, 40)]])
    assert rows[0].values["rouge1"] == 20
    assert rows[0].values["loss"] == 30


def test_loss_is_a_mean_over_tokens_rouge_over_examples() -> None:
    rows = over_seeds([[example("x", "m", 10, 30, tokens=10), example("y", "n", 20, 30, tokens=20)]])
    table = intervals_of(rows, 200)
    assert table["A"]["loss"] == 2.0
    assert table["A"]["rouge1"] == 15.0
    assert table["A"]["examples"] == table["mean"]["examples"] == 2


def test_a_comparison_is_paired() -> None:
    ours = over_seeds([[example(str(i), f"m{i}", 10 + 10 * i, 5) for i in range(8)]])
    theirs = over_seeds([[example(str(i), f"m{i}", 9 + 10 * i, 5) for i in range(8)]])
    assert {row.values["average"] for row in differences(ours, theirs)} == {1}
    rows = compare(
        {"ours": ours, "theirs": theirs},
        "ours",
        ["theirs"],
        [],
        "average",
        bootstrap_samples=200,
        permutation_samples=2000,
    )
    assert (rows[0]["client"], rows[0]["difference"], rows[0]["low"], rows[0]["high"]) == ("mean", 1.0, 1.0, 1.0)
    assert rows[0]["p"] == rows[0]["p_holm"] < 0.02
    assert rows[1]["p_holm"] is None


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


def test_means_beside_each_other_are_over_the_same_clients() -> None:
    """One run has a fourth client with 40: its mean over the three that both have stays 20."""

    def metrics(clients: str) -> dict[str, dict[str, float]]:
        return {client: {"average": 40.0 if client == "D" else 20.0} for client in [*clients, "mean"]}

    def scored(clients: str) -> list[Scored]:
        return [
            Scored(f"{c}{i}", c, f"m{i}", 1, {"average": 40.0 if c == "D" else 20.0}) for c in clients for i in range(4)
        ]

    runs = {"three": "ABC", "four": "ABCD"}
    results = Results(
        rows={},
        scored={name: scored(clients) for name, clients in runs.items()},
        metrics={name: metrics(clients) for name, clients in runs.items()},
        by_seed={},
        histories={},
    )
    beside = side_by_side(results, ["three", "four", "gone"], samples=200)
    assert {name: figures["mean"]["average"] for name, figures in beside.items()} == {"three": 20.0, "four": 20.0}
    assert beside["four"]["D"]["average"] == 40.0
