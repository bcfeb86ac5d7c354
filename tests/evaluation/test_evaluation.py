"""Figures, intervals and tests, with numbers worked by hand."""

from __future__ import annotations

import pytest

from pipeline.evaluation.intervals import Interval
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
from pipeline.evaluation.significance import holm


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
    return compare(scored, "ours", family, others, "average", 2000)


def test_a_comparison_is_paired() -> None:
    """A point more in each of eight meetings: all signs agree in 2 of 256 draws, p is near 0.008."""
    ours, theirs = eight(1), eight(0)
    assert {row.values["average"] for row in differences(ours, theirs)} == {1}
    mean, client = compared({"ours": ours, "theirs": theirs}, ["theirs"], [])
    assert (mean.run, mean.against, mean.client) == ("ours", "theirs", "mean")
    assert mean.difference.ends == pytest.approx((1.0, 1.0))
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


def test_a_comparison_that_was_not_run_counts_in_its_family() -> None:
    """Of two named in advance one is missing: the p of the other is doubled all the same, as a claim's is."""
    (mean, _) = compared({"ours": eight(1), "sure": eight(0)}, ["sure", "gone"], [])
    assert mean.p_holm == pytest.approx(2 * mean.p)


def test_every_run_is_compared_and_tested_if_it_was_named_in_advance() -> None:
    """AdaFedProx is none of those; a run that was not made is no comparison."""
    scored = {"ours": eight(1), "avg": eight(0), "local": eight(0.5), "prox": eight(0)}
    found = significance(scored, "ours", {"avg", "local", "kd"}, ["average", "loss"], 200)
    over_all = [one for one in found if one.client == "mean"]
    assert [(one.metric, one.against, one.p_holm is None) for one in over_all] == [
        (metric, against, against == "prox") for metric in ("average", "loss") for against in ("avg", "local", "prox")
    ]
    assert over_all[3].difference.value == pytest.approx(-0.1), "a nat less over ten tokens"


def test_a_row_of_comparisons_says_what_could_have_been_seen() -> None:
    """To six digits; a standard error of 0.25 with 10 degrees of freedom: t quantiles 2.2281 and 0.8791."""
    one = Comparison("average", "a", "b", "mean", Interval(1.0000004, 0.5, 1.5, 0.25, 10), 0.0123456, None)
    row = one.to_row()
    assert (row["difference"], row["low"], row["high"], row["p"], row["p_holm"]) == (1.0, 0.5, 1.5, 0.01235, None)
    assert row["visible"] == pytest.approx(0.25 * (2.2281 + 0.8791), abs=1e-4)


def test_a_client_that_was_tested_on_few_meetings_gets_a_point() -> None:
    """29 meetings are too few, 30 are enough; the mean over clients has an interval either way."""
    for meetings, is_point in ((29, True), (30, False)):
        rows = [Scored(str(i), "A", f"m{i}", 1, {"average": float(i % 7)}) for i in range(meetings)]
        figures = figures_of(rows, 200)
        assert figures["A"].metrics["average"].is_point == is_point
        assert not figures["mean"].metrics["average"].is_point


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
