"""Effects, their intervals and p, worked by hand on few groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from pipeline.errors import QuorumError
from pipeline.evaluation.comparisons import (
    AtLength,
    Comparison,
    Effect,
    at_equal_length,
    cochran,
    compare,
    on_known_metrics,
    read_comparisons,
    unknown_runs,
    with_holm,
)
from pipeline.evaluation.intervals import Clusters, Interval
from pipeline.evaluation.scores import Scored, ScoresBySeed, at_length, contrast
from pipeline.tasks.task import LOSS, Metric

SCORE = Metric("score", "score", "points", "more", 2)
REPETITION = Metric("repetition", "repetition", "%", "less", 1)


def clusters(*values: float, first: int = 0) -> Clusters:
    """A group a value."""
    names = [f"m{first + number:02}" for number in range(len(values))]
    return Clusters.of(names, values, [1.0] * len(values))


def comparison(**changes: Any) -> Comparison:
    plain = {"name": "c", "statement": "a is better than b", "terms": {"a": 1, "b": -1}, "effects": {"score": 2.0}}
    return Comparison.model_validate(plain | changes)


def of(by_seed: Mapping[int | None, Clusters]) -> Any:
    """A contrast by seed, the same for all terms and metrics."""
    return lambda terms, metric, seed: {"client": by_seed[seed]} if seed in by_seed else None


def test_an_effect_over_groups_is_their_mean_with_each_seeds_own() -> None:
    pooled, first, second = clusters(*[1, 3] * 6), clusters(*[1, 3] * 3), clusters(*[1, 3] * 3, first=6)
    (effect,) = compare([comparison()], of({None: pooled, 1: first, 2: second}), [1, 2], 500)
    assert effect.interval is not None
    assert effect.interval.value == pytest.approx(2)
    assert effect.interval.low > 0
    assert (effect.by_seed, effect.groups, effect.paper) == ({1: 2.0, 2: 2.0}, 12, 2.0)
    assert effect.p_seeds == pytest.approx(1)


def test_a_comparison_without_its_runs_has_no_effect() -> None:
    assert compare([comparison()], of({}), [1], 500) == [Effect(comparison(), "score")]


def test_over_seeds_each_seed_is_an_observation() -> None:
    """1, 2, 3: mean 2, standard error 1/√3, t = 3.46 with 2 degrees of freedom: p 0.0742, and 2 ± 4.303/√3."""
    alone = {seed: clusters(float(seed)) for seed in (1, 2, 3)}
    (effect,) = compare([comparison(over="seeds")], of(alone), [1, 2, 3], 500)
    assert effect.interval is not None
    assert effect.interval.ends == pytest.approx((2 - 4.3027 / math.sqrt(3), 2 + 4.3027 / math.sqrt(3)), abs=1e-3)
    assert effect.p == pytest.approx(0.0742, abs=1e-4)


def test_one_seed_alone_has_no_interval_over_seeds() -> None:
    (effect,) = compare([comparison(over="seeds")], of({1: clusters(2.0)}), [1], 500)
    assert effect.interval is not None
    assert effect.interval.is_point
    assert effect.p is None


def test_cochrans_q_of_two_seeds_by_hand() -> None:
    """Groups 0, 2 and 4, 6: means 1 and 5, squared standard errors 2/1 · (1² + 1²)/2² = 1: Q = 8 with 1 degree."""
    assert cochran({1: {"c": clusters(0, 2)}, 2: {"c": clusters(4, 6, first=2)}}) == pytest.approx(0.004678, abs=1e-5)


def test_seeds_that_share_groups_are_not_tested_for_agreement() -> None:
    assert cochran({1: {"c": clusters(0, 2)}, 2: {"c": clusters(4, 6)}}) is None


def test_where_seeds_disagree_their_own_spread_gives_interval_and_p() -> None:
    """Effects 0 and 10: mean 5, standard error 5, t of one degree of freedom 12.706."""
    first, second = clusters(-0.1, 0.1, -0.1, 0.1), clusters(9.9, 10.1, 9.9, 10.1, first=4)
    pooled = clusters(-0.1, 0.1, -0.1, 0.1, 9.9, 10.1, 9.9, 10.1)
    (effect,) = compare([comparison()], of({None: pooled, 1: first, 2: second}), [1, 2], 500)
    assert effect.disagree
    assert effect.interval is not None
    assert effect.interval.ends == pytest.approx((5 - 5 * 12.706, 5 + 5 * 12.706), abs=0.01)
    assert effect.p == pytest.approx(0.5)  # t = 1 with 1 degree of freedom
    assert effect.pooled is not None
    assert effect.pooled.value == pytest.approx(5)
    assert effect.pooled.high < 15, "of eight groups, not of two seeds"


def test_where_seeds_disagree_their_own_spread_gives_the_effect_at_equal_length() -> None:
    """Intercepts 1 and 3 at the seeds: 2 ± 12.706. Pooled it would be the intercept of all examples."""
    first, second = clusters(-0.1, 0.1, -0.1, 0.1), clusters(9.9, 10.1, 9.9, 10.1, first=4)
    pooled = clusters(-0.1, 0.1, -0.1, 0.1, 9.9, 10.1, 9.9, 10.1)
    logs = np.array([-1.0, 0.0, 1.0, 2.0])
    at = {seed: {"c": AtLength(gain + 2 * logs, logs, list("abcd"))} for seed, gain in ((1, 1.0), (2, 3.0))}
    both = AtLength(np.full(8, 7.0), np.zeros(8), list("abcdefgh"))
    (effect,) = compare(
        [comparison()],
        of({None: pooled, 1: first, 2: second}),
        [1, 2],
        500,
        lambda terms, metric, seed: {"c": both} if seed is None else at[seed],
    )
    assert effect.at_equal_length is not None
    assert effect.at_equal_length.value == pytest.approx(2)
    assert effect.at_equal_length.ends == pytest.approx((2 - 12.706, 2 + 12.706), abs=0.01)


def test_where_seeds_agree_the_effect_at_equal_length_is_pooled() -> None:
    both = AtLength(np.full(4, 7.0), np.zeros(4), list("abcd"))
    alone = {None: clusters(*[1, 3] * 6), 1: clusters(*[1, 3] * 3), 2: clusters(*[1, 3] * 3, first=6)}
    (effect,) = compare([comparison()], of(alone), [1, 2], 500, lambda terms, metric, seed: {"c": both})
    assert effect.at_equal_length == Interval(7.0, 7.0, 7.0)
    assert effect.pooled is None


def test_holm_runs_over_a_family_and_metric_and_counts_what_was_not_run() -> None:
    """Of three members p = 0.01, 0.02 and none: 3 · 0.01, 2 · 0.02; a comparison without a family stays as it is."""
    members = [
        Effect(comparison(family="f"), "score", p=0.01),
        Effect(comparison(family="f"), "score", p=0.02),
        Effect(comparison(family="f"), "score"),
        Effect(comparison(), "score", p=0.03),
    ]
    assert [one.p_holm for one in with_holm(members)] == [pytest.approx(0.03), pytest.approx(0.04), None, None]


def test_the_effect_at_equal_length_is_the_intercept() -> None:
    """Gains 1 + 2 l at log lengths −1, 0, 1, 2: at equal length 1."""
    lengths = np.array([-1.0, 0.0, 1.0, 2.0])
    found = at_equal_length({"c": AtLength(1 + 2 * lengths, lengths, ["a", "b", "c", "d"])}, samples=200)
    assert found.value == pytest.approx(1)
    assert found.ends == pytest.approx((1, 1))


def test_texts_of_equal_length_have_their_mean_gain() -> None:
    found = at_equal_length({"c": AtLength(np.array([1.0, 3.0]), np.zeros(2), ["a", "b"])}, samples=200)
    assert found.value == pytest.approx(2)


@pytest.mark.parametrize(("theirs", "width"), [("abcdefgh", 0.0), ("ijklmnop", 1.0)])
def test_groups_that_clients_share_are_drawn_once(theirs: str, width: float) -> None:
    """Gains 0 … 7 and 7 … 0 on the same groups: drawn together their mean is 3.5 in every sample; apart it is not."""
    gains = np.arange(8.0)
    one, other = (
        AtLength(values, np.zeros(8), list(names)) for values, names in ((gains, "abcdefgh"), (gains[::-1], theirs))
    )
    found = at_equal_length({"c": one, "d": other}, samples=200)
    assert found.value == pytest.approx(3.5)
    assert (found.high - found.low > width) if width else found.ends == pytest.approx((3.5, 3.5))


def row(identity: str, meeting: str, **values: float) -> Scored:
    return Scored(identity, "client", meeting, 10, values)


RUNS = {
    "a": [row("1", "m", score=5.0, loss=20.0, length=4.0), row("2", "n", score=1.0, loss=30.0, length=0.0)],
    "b": [row("1", "m", score=2.0, loss=25.0, length=2.0)],
}


def test_a_contrast_is_over_the_examples_that_all_runs_have() -> None:
    found = contrast(RUNS, {"a": 1, "b": -1}, SCORE)
    assert found is not None
    assert (found["client"].names, found["client"].ratio()) == (("m",), 3.0)


def test_a_lower_loss_is_a_gain_and_counts_by_token() -> None:
    found = contrast(RUNS, {"a": 1, "b": -1}, LOSS)
    assert found is not None
    assert found["client"].ratio() == pytest.approx(0.5)


def test_of_any_metric_of_which_less_is_better_less_is_a_gain() -> None:
    """3 % less, also at equal length."""
    runs = {run: [row(str(n), str(n), repetition=v, length=4.0) for n in (1, 2)] for run, v in (("a", 2), ("b", 5))}
    found, at = contrast(runs, {"a": 1, "b": -1}, REPETITION), at_length(runs, {"a": 1, "b": -1}, REPETITION)
    assert found is not None
    assert at is not None
    assert (found["client"].ratio(), at["client"].gains.tolist()) == (3.0, [3.0, 3.0])


def test_a_contrast_of_a_missing_run_or_metric_is_none() -> None:
    assert contrast(RUNS, {"a": 1, "gone": -1}, SCORE) is None
    assert contrast(RUNS, {"a": 1, "b": -1}, REPETITION) is None


def test_a_contrast_is_over_the_seeds_that_all_runs_have() -> None:
    """Run a has 1, 3 and 8 at three seeds, b 0 and 1 at two: 2 − 0.5, and not 4 − 0.5; run c shares none with a."""
    scores = {11: {"a": 1, "b": 0}, 12: {"a": 3, "b": 1}, 13: {"a": 8}, 14: {"c": 1}}
    by_seed = ScoresBySeed(
        {seed: {run: [row("1", "m", score=v)] for run, v in own.items()} for seed, own in scores.items()},
        {"score": SCORE},
    )
    found = by_seed.contrast({"a": 1, "b": -1}, "score", None)
    assert found is not None
    assert found["client"].ratio() == 1.5
    assert by_seed.contrast({"a": 1, "b": -1}, "score", 13) is None
    assert by_seed.contrast({"a": 1, "c": -1}, "score", None) is None
    (effect,) = compare([comparison()], by_seed.contrast, list(scores), 200)
    assert effect.by_seed == {11: 1.0, 12: 2.0}


def test_a_misspelt_metric_is_refused_and_one_of_another_task_is_left_out() -> None:
    """`scor` and `score` share 4 of 9 letters, twice: 0.89. Of a run that is not planned nothing is known."""
    path, known = Path("comparisons.yaml"), {"a": ["score", "loss"], "b": ["score", "loss"]}
    with pytest.raises(
        QuorumError, match=r"^comparisons.yaml: c.effects.scor: no such metric of a; did you mean score"
    ):
        on_known_metrics(path, [comparison(effects={"scor": None})], known)
    two, other = comparison(effects={"score": 1.0, "bleu": 2.0}), comparison(terms={"x": 1}, effects={"coco": None})
    assert [one.effects for one in on_known_metrics(path, [two, other], known)] == [{"score": 1.0}, {"coco": None}]


def test_a_misspelt_run_is_refused_with_the_name_that_is_near() -> None:
    """Of the 23 letters of `fedavg-locl` and `fedavg-local` 22 agree: 0.96."""
    one = comparison(terms={"a": 1, "fedavg-locl": -1})
    with pytest.raises(QuorumError, match=r"c\.terms\.fedavg-locl: no such run .* did you mean fedavg-local\?"):
        unknown_runs(Path("comparisons.yaml"), [one], ["a", "fedavg-local"])


@pytest.mark.parametrize("run", ["single", "fedselectkd-own"])
def test_a_run_that_a_plan_leaves_out_is_listed(run: str) -> None:
    """Of the 26 letters of `fedselectkd-own` and `fedselectkd` 22 agree: 0.85."""
    one = comparison(terms={"fedselectkd": 1, run: -1})
    for known, unknown in (["fedselectkd"], [run]), (["fedselectkd", run], []):
        assert unknown_runs(Path("comparisons.yaml"), [one], known) == unknown


def test_lengths_are_compared_by_their_logs() -> None:
    found = at_length(RUNS, {"a": 1, "b": -1}, SCORE)
    assert found is not None
    assert found["client"].lengths == pytest.approx([math.log(2)])
    assert at_length(RUNS, {"a": 1, "b": -1}, LOSS) is None


@pytest.mark.parametrize(
    ("content", "where"),
    [("question: q\ncomparisons: [{name: x}]", "statement"), ("question: q\nmore: 1", "more"), ("a: [", "not YAML")],
)
def test_a_wrong_file_is_one_line_that_names_it(tmp_path: Path, content: str, where: str) -> None:
    path = tmp_path / "comparisons.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(QuorumError, match=where) as caught:
        read_comparisons(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", [ROOT / "comparisons.yaml", *sorted(ROOT.glob("experiments/*/comparisons.yaml"))])
def test_the_comparisons_of_a_file_have_different_names(path: Path) -> None:
    names = [one.name for one in read_comparisons(path).comparisons]
    assert len(names) == len(set(names))
