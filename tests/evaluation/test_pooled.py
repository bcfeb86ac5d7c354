"""Figures over the texts of all clients, and of each client, with numbers worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.evaluation import pooled
from pipeline.evaluation.pooled import combined, linear, per_client, value_of, with_interval
from pipeline.evaluation.scores import Scored
from pipeline.tasks.task import Metric

SCORE = Metric("score", "score", "", "more", 1)
OF_SPANS = replace(SCORE, per="spans")
F1 = Metric("f1", "span F1", "", "more", 1, per="spans", sought="true")


def rows(*scores: float, groups: str = "012", labels: str = "xxx", spans: str = "000") -> list[Scored]:
    """Texts t0, t1, … of a client, each with a letter for its group and its label, and a digit for its spans."""
    texts = enumerate(zip(scores, groups, labels, spans, strict=False))
    return [Scored(f"t{n}", "c", g, 0, {"score": score, "spans": float(s)}, label) for n, (score, g, label, s) in texts]


def spans(client: str, label: str, f1: float, named_and_true: float, true: float) -> Scored:
    return Scored(f"{client}{label}{f1}", client, "", 0, {"f1": f1, "spans": named_and_true, "true": true}, label)


def test_a_mean_is_over_texts_and_a_ratio_over_what_is_counted() -> None:
    """A mean of 50. Two of two spans are 400 over 4 named and true; none of three is 0 over 3: 400 / 7 in all."""
    assert value_of(rows(100.0, 0.0, 50.0), SCORE) == 50.0
    assert value_of(rows(400.0, 0.0, spans="43"), OF_SPANS) == pytest.approx(400 / 7)
    assert value_of(rows(0.0), OF_SPANS) == 0.0


def test_what_texts_add_has_the_metric_as_its_mean() -> None:
    added = [value for _, value in linear({1: rows(400.0, 0.0, 100.0, spans="432")}, OF_SPANS).values()]
    assert np.mean(added) == pytest.approx(500 / 9)


def test_seeds_are_averaged_text_by_text() -> None:
    """(1 + 3) / 2 and (5 + 1) / 2: 2 and 3, whose mean is 2.5."""
    both = {1: rows(1.0, 5.0), 2: rows(3.0, 1.0)}
    assert [value for _, value in linear(both, SCORE).values()] == [2.0, 3.0]
    assert with_interval(both, SCORE, 100).value == 2.5
    # Where seed 1 judges t0 alone, it costs nothing: (100 + (100 + 50) / 2) / 2, the mean of the seeds' means.
    assert with_interval({1: rows(100.0), 2: rows(100.0, 50.0)}, SCORE, 100).value == 87.5


def test_a_combination_is_of_texts_that_all_were_judged_on() -> None:
    """Twice the first less the second, of t0 and t1: (2 · 3 − 1, 2 · 5 − 2) = 5, 8; t2 has one run alone."""
    first, second = {1: rows(3.0, 5.0, 9.0)}, {1: rows(1.0, 2.0)}
    (clusters,) = combined([(2.0, first), (-1.0, second)], SCORE).values()
    assert sorted(clusters.numerator.tolist()) == pytest.approx([5.0, 8.0])


def test_texts_of_a_group_share_a_sign() -> None:
    (clusters,) = combined([(1.0, {1: rows(1.0, 2.0, 4.0, groups="aab")})], SCORE).values()
    assert (clusters.numerator.tolist(), clusters.denominator.tolist()) == ([3.0, 4.0], [2.0, 1.0])


def test_a_clients_score_is_that_of_its_own_mixture() -> None:
    """q = (.8, .2), recalls .9 and .5: .82 for any shares among the test texts."""
    scores = [float(i < 9) for i in range(10)] + [float(i < 20) for i in range(40)]
    judged = rows(*scores, groups="g" * 50, labels="a" * 10 + "b" * 40, spans="0" * 50)
    assert per_client(judged, {"one": {"a": 8, "b": 2}}, SCORE) == {"one": pytest.approx(0.82)}


def test_a_client_whose_texts_hold_no_span_is_left_out() -> None:
    """Client b's label has no true span. One run names a span there, the other none: a is judged, 400 / 8, b never."""
    label_counts = {"a": {"LOC": 4}, "b": {"O": 4}}
    for named in (1, 0):
        judged = [spans("c", "LOC", 400.0, 8, 4), spans("c", "O", 0.0, named, 0)]
        assert per_client(judged, label_counts, F1) == {"a": 50.0}


def test_clients_with_texts_of_their_own_are_judged_by_these() -> None:
    """a: 400 / 8 and 0 / 2 are 400 / 10; b names a span where there is none, and is not judged."""
    judged = [spans("a", "x", 400.0, 8, 4), spans("a", "x", 0.0, 2, 1), spans("b", "x", 0.0, 1, 0)]
    assert pooled.of_own_texts(judged, F1) == {"a": 40.0}


def test_figures_of_lists_by_hand() -> None:
    """Two of twenty are a tenth, one of two at least. Of the last half, 1 → 3 → 1, the changes deviate by 2."""
    assert (pooled.worst_tenth([*range(20)]), pooled.worst_tenth([3.0, 1.0])) == (0.5, 1.0)
    assert pooled.roughness([9.0, 0.0, 9.0, 1.0, 3.0, 1.0]) == 2.0


def test_the_clients_that_lie_farthest_apart_come_first() -> None:
    """b shares nothing with the others, a bit each; a and c are (.5, .5) and (1, 0): .3113 apart."""
    found = pooled.divergences({"a": {"x": 1, "y": 1}, "b": {"z": 4}, "c": {"x": 2}, "none": {}})
    assert found == pytest.approx(np.array([[0, 1, 1], [1, 0, 0.3113], [1, 0.3113, 0]]), abs=1e-4)
