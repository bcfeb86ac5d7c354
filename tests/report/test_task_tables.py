"""Tables of labelled texts, with numbers worked by hand."""

from __future__ import annotations

import math
from typing import Any

from pipeline.clients.skews import SERVER
from pipeline.evaluation.intervals import Interval
from pipeline.plan.text_orders import TextRow
from pipeline.report.text_tables import RunOutcome, client_rows, ends_of, federation_row, method_row
from pipeline.tasks.task import Metric

ACCURACY = Metric("accuracy", "accuracy", "%", "more", 2)


def test_clients_of_fewer_than_five_steps_are_counted() -> None:
    """Batches of 4, a rest of under 4 joins its neighbour: 19 texts are four steps, 20 are five."""
    held = {"a": {"x": 19}, "b": {"x": 12, "y": 8}, "c": {"y": 1}}
    assert federation_row("s", held, 4)["short"] == 2
    assert federation_row("s", held)["short"] == ""


def rows(**scores: list[float]) -> list[dict[str, Any]]:
    """Texts of a label each, with a loss of 1 and 3 nats in turn."""
    labelled = [(label, score) for label, own in scores.items() for score in own]
    return [
        {"id": f"t{i}", "group": f"t{i}", "client": SERVER, "label": label, "accuracy": score}
        | {"loss_sum": 1.0 + 2 * (i % 2), "items": 1}
        for i, (label, score) in enumerate(labelled)
    ]


def test_figures_over_clients_are_means_of_seeds() -> None:
    """Seed 1: client a 100, b 0, c has labels that nobody tests. Seed 2: a 50, b 50. So (50 + 50) / 2, (0 + 50) / 2."""
    row = TextRow.model_construct(name="tc-fedavg", method="AdaFedAvg")
    scored = {1: rows(x=[100, 100], y=[0, 0]), 2: rows(x=[100, 0], y=[0, 100])}
    made = RunOutcome(row, scored, {1: 40.0, 2: 60.0}, {}, 0.0, 0)
    held = {1: {"a": {"x": 3}, "b": {"y": 1}, "c": {"z": 1}}, 2: {"a": {"x": 3}, "b": {"y": 1}}}
    found = method_row(made, [ACCURACY], held, 100)
    assert (found["accuracy"], found["loss"], found["at_best_round"]) == (50.0, 2.0, 50.0)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == (50.0, 25.0, "0.5")


def test_who_is_not_judged_is_a_mean_over_seeds() -> None:
    """At one seed of three a client has a label that nobody tests."""
    row = TextRow.model_construct(name="tc-fedavg", method="AdaFedAvg")
    made = RunOutcome(row, {seed: rows(x=[100]) for seed in (1, 2, 3)}, {}, {}, 0.0, 0)
    held = {1: {"a": {"x": 1}, "b": {"z": 1}}, 2: {"a": {"x": 1}}, 3: {"a": {"x": 1}}}
    assert method_row(made, [ACCURACY], held, 100)["not_judged"] == "0.33"


def test_a_scores_interval_does_not_go_below_0() -> None:
    """Where hardly a span is named, the linear interval would."""
    assert ends_of(Interval(0.3, -0.04, 0.81)) == {"low": 0.0, "high": 0.81}
    assert ends_of(Interval(0.3, math.nan, math.nan)) == {"low": "", "high": ""}


def test_clients_with_texts_of_their_own_are_judged_by_these_alone() -> None:
    """Both hold label x: a's two texts score 100, b's two 0, whatever the other's model makes of x."""
    row = TextRow.model_construct(name="own-single", method="AdaSingle")
    judged = [text | {"client": client} for text, client in zip(rows(x=[100, 100, 0, 0]), "aabb", strict=True)]
    made = RunOutcome(row, {1: judged}, {}, {}, 0.0, 0)
    found = method_row(made, [ACCURACY], {1: {"a": {"x": 2}, "b": {"x": 2}}}, 100)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == (50.0, 0.0, "")
    assert client_rows(made, ACCURACY) == {
        "run": "own-single", "a": 100.0, "b": 0.0, "clients_mean": 50.0, "worst_tenth": 0.0
    }  # fmt: skip


def test_where_nobody_can_be_judged_the_row_says_nothing_of_clients() -> None:
    """Labels that no test text has, as where articles of training and test are others."""
    row = TextRow.model_construct(name="qa-fedavg", method="AdaFedAvg")
    made = RunOutcome(row, {1: rows(x=[100, 0])}, {}, {}, 0.0, 0)
    found = method_row(made, [ACCURACY], {1: {"a": {"z": 1}}}, 100)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == ("", "", "1")
