"""Effects, their intervals and p, worked by hand on few groups."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import QuorumError
from pipeline.evaluation import comparisons
from pipeline.evaluation.comparisons import Comparison, Effect, cochran, compare
from pipeline.evaluation.equal_length import AtLength, at_equal_length
from pipeline.evaluation.intervals import Clusters, Interval
from pipeline.evaluation.scores import Scored, ScoresBySeed
from pipeline.tasks.task import LOSS, Metric

SCORE = Metric("score", "score", "points", "more", 2)
REPETITION = Metric("repetition", "repetition", "%", "less", 1)


def clusters(*values: float, first: int = 0) -> Clusters:
    """A group a value."""
    return Clusters.of([f"m{first + number:02}" for number in range(len(values))], values, [1.0] * len(values))


def comparison(**changes: Any) -> Comparison:
    plain = {"name": "c", "statement": "a is better than b", "terms": {"a": 1, "b": -1}, "effects": {"score": 2.0}}
    return Comparison.model_validate(plain | changes)


def effect_of(one: Comparison, by_seed: Mapping[int | None, Clusters], lengths: Any = None) -> Effect:
    """The effect of a contrast that is the same for all terms and metrics; None: over all seeds."""
    seeds = [seed for seed in by_seed if seed is not None]
    clients = {seed: {"client": own} for seed, own in by_seed.items()}
    at_length = (lambda _terms, _metric, seed: {"c": lengths[seed]}) if lengths else None
    (effect,) = compare([one], lambda _terms, _metric, seed: clients.get(seed), seeds, 500, at_length)
    return effect


AGREEING = {None: clusters(*[1, 3] * 6), 1: clusters(*[1, 3] * 3), 2: clusters(*[1, 3] * 3, first=6)}
LOW, HIGH = (-0.1, 0.1, -0.1, 0.1), (9.9, 10.1, 9.9, 10.1)
DISAGREEING = {None: clusters(*LOW, *HIGH), 1: clusters(*LOW), 2: clusters(*HIGH, first=4)}
LOGS = np.array([-1.0, 0.0, 1.0, 2.0])


def test_an_effect_over_groups_is_their_mean_with_each_seeds_own() -> None:
    """All texts of equal length gain 7."""
    effect = effect_of(comparison(), AGREEING, {None: AtLength(np.full(4, 7.0), np.zeros(4), list("abcd"))})
    assert (effect.interval.value, effect.interval.low > 0) == (pytest.approx(2), True)
    assert (effect.by_seed, effect.groups, effect.paper) == ({1: 2.0, 2: 2.0}, 12, 2.0)
    assert effect.p_seeds == pytest.approx(1)
    assert (effect.at_equal_length, effect.pooled) == (Interval(7.0, 7.0, 7.0), None)


def test_over_seeds_each_seed_is_an_observation_and_one_alone_has_no_interval() -> None:
    """1, 2, 3: mean 2, standard error 1/√3, t = 3.46 with 2 degrees of freedom: p 0.0742, and 2 ± 4.303/√3."""
    three = effect_of(comparison(over="seeds"), {seed: clusters(float(seed)) for seed in (1, 2, 3)})
    assert three.interval.ends == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)
    assert (three.interval.standard_error, three.p) == (pytest.approx(3**-0.5), pytest.approx(0.0742, abs=1e-4))
    one = effect_of(comparison(over="seeds"), {1: clusters(2.0)})
    assert (one.interval.value, one.interval.is_point, one.p) == (2.0, True, None)


def test_cochrans_q_of_two_seeds_by_hand() -> None:
    """Groups 0, 2 and 4, 6: means 1 and 5, squared standard errors 2/1 · (1² + 1²)/2² = 1: Q = 8 with 1 degree."""
    assert cochran({1: {"c": clusters(0, 2)}, 2: {"c": clusters(4, 6, first=2)}}) == pytest.approx(0.004678, abs=1e-5)
    assert cochran({1: {"c": clusters(0, 2)}, 2: {"c": clusters(4, 6)}}) is None, "seeds that share groups"


def test_where_seeds_disagree_their_own_spread_gives_intervals_and_p() -> None:
    """Effects 0 and 10: mean 5, standard error 5, t of one degree of freedom 12.706."""
    lengths = {seed: AtLength(gain + 2 * LOGS, LOGS, list("abcd")) for seed, gain in ((1, 1.0), (2, 3.0))}
    effect = effect_of(comparison(), DISAGREEING, lengths)
    pooled, equal = effect.pooled, effect.at_equal_length
    assert effect.disagree
    assert effect.interval.ends == pytest.approx((5 - 5 * 12.706, 5 + 5 * 12.706), abs=0.01)
    assert effect.p == pytest.approx(0.5)  # t = 1 with 1 degree of freedom
    assert pooled.value == pytest.approx(5)
    assert pooled.high < 15, "of eight groups, not of two seeds"
    # At equal length 1 and 3: 2 ± 12.706. Pooled it would be the intercept of all examples.
    assert (equal.value, *equal.ends) == pytest.approx((2, 2 - 12.706, 2 + 12.706), abs=0.01)


def test_holm_runs_over_a_family_and_metric_and_counts_what_was_not_run() -> None:
    """Of three members p = 0.01, 0.02 and none: 3 · 0.01, 2 · 0.02; a comparison without a family stays as it is."""
    members = [Effect(comparison(family="f"), "score", p=p) for p in (0.01, 0.02, None)]
    found = comparisons.with_holm([*members, Effect(comparison(), "score", p=0.03)])
    assert [one.p_holm for one in found] == [pytest.approx(0.03), pytest.approx(0.04), None, None]


@pytest.mark.parametrize(
    ("gains", "lengths", "effect"), [(1 + 2 * LOGS, LOGS, 1.0), (np.array([1.0, 3.0, 2.0, 2.0]), np.zeros(4), 2.0)]
)
def test_the_effect_at_equal_length_is_the_intercept(gains: np.ndarray, lengths: np.ndarray, effect: float) -> None:
    """Gains 1 + 2 l at log lengths −1, 0, 1, 2: at equal length 1. Texts of equal length have their mean gain."""
    found = at_equal_length({"c": AtLength(gains, lengths, ["a", "b", "c", "d"])}, samples=200)
    assert found.value == pytest.approx(effect)
    assert (found.ends == pytest.approx((effect, effect))) == lengths.any()


def test_groups_that_clients_share_are_drawn_once() -> None:
    """Gains 0 … 7 and 7 … 0 on the same groups: drawn together their mean is 3.5 in every sample; apart it is not."""
    one = AtLength(np.arange(8.0), np.zeros(8), list("abcdefgh"))
    others = (AtLength(one.gains[::-1], one.lengths, list(names)) for names in ("abcdefgh", "ijklmnop"))
    together, apart = (at_equal_length({"c": one, "d": other}, samples=200) for other in others)
    assert (together.value, *together.ends, apart.value) == pytest.approx((3.5,) * 4)
    assert apart.high - apart.low > 1.0


def row(identity: str, meeting: str, **values: float) -> Scored:
    return Scored(identity, "client", meeting, 10, values)


RUNS = {
    "a": [row("1", "m", score=5.0, loss=20.0, length=4.0), row("2", "n", score=1.0, loss=30.0, length=0.0)],
    "b": [row("1", "m", score=2.0, loss=25.0, length=2.0)],
    "repeats": [row("1", "m", repetition=5.0, length=4.0)],
    "less": [row("1", "m", repetition=2.0, length=4.0)],
}
METRICS = {metric.name: metric for metric in (SCORE, LOSS, REPETITION)}
ONE_SEED = ScoresBySeed({1: RUNS}, METRICS)
CONTRASTS = [
    ("a", "b", "score", 3.0),  # of example 1, which both have
    ("a", "b", "loss", 0.5),  # 5 nats less over 10 tokens
    ("less", "repeats", "repetition", 3.0),
    ("a", "gone", "score", None),
    ("a", "b", "repetition", None),
]
WRONG = [("question: q\ncomparisons: [{name: x}]", "statement"), ("question: q\nmore: 1", "more"), ("a: [", "not YAML")]


@pytest.mark.parametrize(("one", "other", "metric", "gain"), CONTRASTS)
def test_a_contrast_is_a_gain_over_what_all_runs_have(one: str, other: str, metric: str, gain: float | None) -> None:
    found = ONE_SEED.contrast({one: 1, other: -1}, metric, 1)
    assert found is None if gain is None else found is not None and found["client"].ratio() == pytest.approx(gain)
    assert found is None or found["client"].names == ("m",)


def test_lengths_are_compared_by_their_logs_and_a_loss_has_none() -> None:
    """4 words and 2; 3 % less repetition is a gain, also at equal length."""
    found = ONE_SEED.at_length({"a": 1, "b": -1}, "score", None)
    assert found["client"].lengths == pytest.approx([math.log(2)])
    assert ONE_SEED.at_length({"a": 1, "b": -1}, "loss", None) is None
    less = ONE_SEED.at_length({"less": 1, "repeats": -1}, "repetition", None)["client"]
    assert (less.gains.tolist(), less.lengths.tolist()) == ([3.0], [0.0])


def test_a_contrast_is_over_the_seeds_that_all_runs_have() -> None:
    """Run a has 1, 3 and 8 at three seeds, b 0 and 1 at two: 2 − 0.5, and not 4 − 0.5; run c shares none with a."""
    scores = {11: {"a": 1, "b": 0}, 12: {"a": 3, "b": 1}, 13: {"a": 8}, 14: {"c": 1}}
    runs = {seed: {run: [row("1", "m", score=v)] for run, v in own.items()} for seed, own in scores.items()}
    by_seed = ScoresBySeed(runs, METRICS)
    assert by_seed.contrast({"a": 1, "b": -1}, "score", None)["client"].ratio() == 1.5
    assert by_seed.contrast({"a": 1, "b": -1}, "score", 13) is None
    assert by_seed.contrast({"a": 1, "c": -1}, "score", None) is None
    apart = comparison(terms={"a": 1, "c": -1})
    assert compare([apart], by_seed.contrast, list(scores), 200) == [Effect(apart, "score")]
    (effect,) = compare([comparison()], by_seed.contrast, list(scores), 200)
    assert effect.by_seed == {11: 1.0, 12: 2.0}


def test_a_misspelt_metric_is_refused_and_one_of_another_task_is_left_out() -> None:
    """`scor` and `score` share 4 of 9 letters, twice: 0.89. Of a run that is not planned nothing is known."""
    path, known = Path("comparisons.yaml"), {"a": ["score", "loss"], "b": ["score", "loss"]}
    with pytest.raises(QuorumError, match=r"^comparisons.yaml: c.effects.scor: no such metric of a; .* mean score"):
        comparisons.on_known_metrics(path, [comparison(effects={"scor": None})], known)
    two, other = comparison(effects={"score": 1.0, "bleu": 2.0}), comparison(terms={"x": 1}, effects={"coco": None})
    found = comparisons.on_known_metrics(path, [two, other], known)
    assert [one.effects for one in found] == [{"score": 1.0}, {"coco": None}]


def test_a_misspelt_run_is_refused_and_one_that_a_plan_leaves_out_is_listed() -> None:
    """Of the 23 letters of `fedavg-locl` and `fedavg-local` 22 agree: 0.96; of the 26 of `fedselectkd-own` 22: 0.85."""
    path, known = Path("comparisons.yaml"), ["a", "fedavg-local", "fedselectkd"]
    with pytest.raises(QuorumError, match=r"c\.terms\.fedavg-locl: no such run .* did you mean fedavg-local\?"):
        comparisons.unknown_runs(path, [comparison(terms={"a": 1, "fedavg-locl": -1})], known)
    left_out = comparison(terms={"a": 1, "single": 1, "fedselectkd-own": -1})
    assert comparisons.unknown_runs(path, [left_out], known) == ["single", "fedselectkd-own"]


@pytest.mark.parametrize(("content", "where"), WRONG)
def test_a_wrong_file_is_one_line_that_names_it(tmp_path: Path, content: str, where: str) -> None:
    path = tmp_path / "comparisons.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(QuorumError, match=rf"^{path}: .*{where}.*\Z"):
        comparisons.read_comparisons(path)
