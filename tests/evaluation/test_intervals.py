"""Intervals and p-values by signs of whole meetings, worked by hand, and their coverage at our cluster sizes."""

from collections.abc import Sequence
from itertools import product
from statistics import fmean

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from made_results import AVERAGE

from pipeline.evaluation.intervals import Clusters, Interval, aligned, interval_of, sign_flip, standard_error
from pipeline.evaluation.scores import Scored, ScoresBySeed, read_rows
from pipeline.runs.result_files import read_result
from pipeline.tasks.task import LOSS, Metric

ONES = Clusters.of(["m", "n"], [1.0, 1.0], [1.0, 1.0])
OTHERS = ("fedavg", "fedavg-local", "single", "fedkd", "centralized")


def of_meetings(values: Sequence[float], prefix: str = "m") -> Clusters:
    """A meeting a value."""
    return Clusters.of([f"{prefix}{i:03}" for i in range(len(values))], list(values), [1.0] * len(values))


def test_the_interval_holds_just_what_the_test_does_not_reject() -> None:
    """Eight meetings, all 256 signs: p is above 0.05 a little inside either end, and not a little outside."""
    values = np.array([0.5, 1.5, -0.3, 2.0, 0.9, 1.1, 0.2, 1.6])

    def p(theta: float) -> float:
        means = np.array([*product((-1, 1), repeat=8)]) @ (values - theta) / 8
        return float(np.mean(np.abs(means) >= abs(values.mean() - theta) - 1e-12))

    interval = interval_of({"a": of_meetings(values)}, 200_000)
    for end, inwards in ((interval.low, 0.03), (interval.high, -0.03)):
        assert p(end - inwards) <= 0.05 < p(end + inwards)


@given(st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=8, max_size=20))
def test_zero_lies_outside_where_p_is_small(values: list[float]) -> None:
    """One set of signs serves both, so that a page never says two things."""
    clients = {"a": of_meetings(values)}
    interval, p = interval_of(clients, 999), sign_flip(clients, 999)
    assert (interval.low > 1e-9 or interval.high < -1e-9) <= (p <= 0.05)
    assert (interval.low < -1e-9 and interval.high > 1e-9) <= (p > 0.05)


def test_queries_of_one_meeting_are_not_independent() -> None:
    """The same 48 scores: as 48 meetings the interval is narrower than as 8 meetings of 6 equal scores."""
    scores = [float(i // 6) for i in range(48)]
    apart = interval_of({"a": of_meetings(scores)}, 2000)
    together = interval_of({"a": Clusters.of([str(i // 6) for i in range(48)], scores, [1.0] * 48)}, 2000)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_a_meeting_that_clients_share_counts_once() -> None:
    """Two clients with the same scores on the same meetings know no more than one of them does."""
    scores = np.random.default_rng(2).normal(20, 5, 12)
    one, other = of_meetings(scores, "a"), of_meetings(scores, "b")
    clients = {"a": one}, {"a": one, "b": one}, {"a": one, "b": other}
    alone, shared, apart = (interval_of(own, 4000) for own in clients)
    assert shared.standard_error == pytest.approx(alone.standard_error)
    assert shared.ends == pytest.approx(alone.ends)
    assert apart.standard_error == pytest.approx(alone.standard_error / 2**0.5)


def test_five_meetings_give_a_point() -> None:
    """All signs agree in 2 of 32 draws, more often than one in twenty: nothing can be rejected."""
    found = [interval_of({"a": of_meetings([*range(1, count + 1)])}, 4000).is_point for count in (5, 6)]
    assert found == [True, False]


def test_the_variances_of_clients_add_to_a_standard_error() -> None:
    """Values 1, 2, 3: variance 1, of the mean 1/3. With a client of variance 3: (1/3 + 3/3) / 2² = 1/3 again."""
    a, b = of_meetings([1.0, 2.0, 3.0], "a"), of_meetings([0.0, 3**0.5, 2 * 3**0.5], "b")
    assert interval_of({"a": a}, 100).standard_error == pytest.approx((1 / 3) ** 0.5)
    assert standard_error({"a": a, "b": b}) == pytest.approx((1 / 3) ** 0.5)


def test_how_far_clients_lie_apart_is_no_noise_of_a_level() -> None:
    """One client near 10, the other near 30: as wide as if both were near 20, and of the same value."""
    values = np.random.default_rng(3).normal(0, 1, (2, 10))
    apart = {"a": of_meetings(values[0] + 10, "a"), "b": of_meetings(values[1] + 30, "b")}
    together = {"a": of_meetings(values[0] + 20, "a"), "b": of_meetings(values[1] + 20, "b")}
    level, same = (interval_of(aligned(clients), 4000) for clients in (apart, together))
    assert level.value == pytest.approx(20.0, abs=0.5)
    assert level.ends == pytest.approx(interval_of(aligned(together), 4000).ends)
    assert level.high - level.low < 1.2 * (same.high - same.low)
    assert interval_of(apart, 4000).high - interval_of(apart, 4000).low > 3 * (level.high - level.low)


def test_a_point_has_no_ends_in_text_and_files() -> None:
    point = Interval(1.0, 0.5, 1.5, 0.25).alone()
    assert (point.span(2), point.rounded(2)) == ("", {"value": 1.0, "standard_error": 0.25})
    assert Interval(1.0, -0.5, 1.5).span(1, "+") == "−0.5 … +1.5"


@pytest.mark.parametrize(
    ("clients", "p"),
    [
        ({"c": of_meetings([1.0, 1.0, 1.0])}, 1 / 4),  # |Δ*| ≥ 1 only if all signs agree, 2 of 8
        ({"a": ONES, "b": Clusters.of(["o"], [3.0], [1.0])}, 1 / 4),  # |Δ*| ≥ 2 only if all three signs agree
        ({"a": ONES, "b": ONES}, 1 / 2),  # a shared meeting has one sign: 2 of 4 draws; flipped apart 2 of 16
        ({"c": of_meetings([0.0, 0.0])}, 1.0),
    ],
)
def test_sign_flips_by_hand(clients: dict[str, Clusters], p: float) -> None:
    assert sign_flip(clients, 20000) == pytest.approx(p, abs=0.02)


def redrawn(own: Clusters, rng: np.random.Generator) -> Clusters:
    """As many meetings of a client, drawn from its own with replacement: each is a new one."""
    picks = rng.integers(0, len(own.names), len(own.names))
    return Clusters(own.numerator[picks], own.denominator[picks], own.names)


@pytest.mark.parametrize(("metric", "least"), [(AVERAGE, 0.92), (LOSS, 0.9)], ids=["rouge", "loss"])
@pytest.mark.parametrize("folder", ["experiments/paper", "experiments/full"])
def test_intervals_cover_the_truth(folder: str, metric: Metric, least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the committed meetings were all there are, intervals of redrawn ones would cover the true gain."""
    monkeypatch.chdir(ROOT / folder)
    rng, covered, by_seed = np.random.default_rng(7), [], dict[int, dict[str, list[Scored]]]()
    for run in ("fedselectkd", *OTHERS):
        for seed, own in read_result(run).items():
            by_seed.setdefault(seed, {})[run] = read_rows(own["scores"]["examples"])
    scores = ScoresBySeed(by_seed, {metric.name: metric})
    for other in OTHERS:
        clients = scores.contrast({"fedselectkd": 1, other: -1}, metric.name, None)
        truth = fmean(own.ratio() for own in clients.values())
        samples = ({name: redrawn(own, rng) for name, own in clients.items()} for _ in range(300))
        found = [interval_of(sample, 999) for sample in samples]
        covered.append(fmean(one.low <= truth <= one.high for one in found))
    assert fmean(covered) >= least
