"""Tables of tasks with labels, with numbers worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from made_results import LEARNER, row_of

from pipeline.clients.skews import SERVER
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Scored
from pipeline.report.task_tables import (
    RunOutcome,
    client_rows,
    cost_row,
    data_row,
    ends_of,
    federation_row,
    majority_row,
    method_row,
    with_paper,
)
from pipeline.tasks.task import Metric

ACCURACY = Metric("accuracy", "accuracy", "%", "more", 2)
ENCODER = LEARNER.model_copy(update={"view": LEARNER.view.model_copy(update={"frozen": "e,0-1"})})


def rows(**scores: list[float]) -> list[Scored]:
    """Texts of a label each, with a loss of 1 and 3 nats in turn."""
    labelled = [(label, score) for label, own in scores.items() for score in own]
    return [
        Scored(f"t{i}", SERVER, f"t{i}", 1, {"accuracy": score, "loss": 1.0 + 2 * (i % 2)}, label)
        for i, (label, score) in enumerate(labelled)
    ]


def outcome(*scored: list[Scored], **best: float) -> RunOutcome:
    """A run of 10 trainable numbers that sent 2 MB, with these test rows at seeds 1, 2, …"""
    row = row_of("tc-fedavg", method="AdaFedAvg", learner=ENCODER)
    at = {int(seed.removeprefix("seed_")): value for seed, value in best.items()}
    return RunOutcome(row, dict(enumerate(scored, 1)), at, {}, 2_000_000.0, 10)


# --- runs -----------------------------------------------------------------------------------------------------------


def test_figures_over_clients_are_means_of_seeds() -> None:
    """Seed 1: client a 100, b 0, c has no label that is tested. Seed 2: a 50, b 50. (50 + 50) / 2 and (0 + 50) / 2."""
    made = outcome(rows(x=[100, 100], y=[0, 0]), rows(x=[100, 0], y=[0, 100]), seed_1=40.0, seed_2=60.0)
    label_counts = {1: {"a": {"x": 3}, "b": {"y": 1}, "c": {"z": 1}}, 2: {"a": {"x": 3}, "b": {"y": 1}}}
    found = method_row(made, [ACCURACY], label_counts, 100)
    assert (found["accuracy"], found["loss"], found["at_best_round"]) == (50.0, 2.0, 50.0)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == (50.0, 25.0, "0.5")


@pytest.mark.parametrize(
    ("scored", "label_counts", "cells"),
    [
        ([[100]] * 3, {1: {"a": {"x": 1}, "b": {"z": 1}}, 2: {"a": {"x": 1}}, 3: {"a": {"x": 1}}}, (100, 100, "0.33")),
        ([[100, 0]], {1: {"a": {"z": 1}}}, ("", "", "1")),
    ],
    ids=["at one seed of three a client has a label that no test text has", "no label is tested"],
)
def test_clients_that_cannot_be_scored_are_counted_as_a_mean_over_seeds(
    scored: list[list[float]], label_counts: dict[int, Any], cells: tuple[Any, ...]
) -> None:
    found = method_row(outcome(*(rows(x=own) for own in scored)), [ACCURACY], label_counts, 100)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == cells


def test_clients_with_test_texts_are_scored_by_these_alone() -> None:
    """Both have label x: a's two texts score 100, b's two 0."""
    own = [replace(text, client=client) for text, client in zip(rows(x=[100, 100, 0, 0]), "aabb", strict=True)]
    found = method_row(outcome(own), [ACCURACY], {1: {"a": {"x": 2}, "b": {"x": 2}}}, 100)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == (50.0, 0.0, "")
    shown = {"a": 100.0, "b": 0.0, "clients_mean": 50.0, "worst_tenth": 0.0}
    assert client_rows(outcome(own), ACCURACY) == {"run": "tc-fedavg"} | shown


def test_a_scores_interval_does_not_go_below_0() -> None:
    """Where hardly a span is named, the linear interval would."""
    assert ends_of(Interval(0.3, -0.04, 0.81)) == {"low": 0.0, "high": 0.81}
    assert ends_of(Interval(0.3, math.nan, math.nan)) == {"low": "", "high": ""}


def test_a_cost_has_what_trains_what_is_sent_and_the_score() -> None:
    found = cost_row(outcome(rows(x=[100, 0])), ACCURACY, 100, 61.234)
    shown = {"frozen": "e,0-1", "parameters": 10, "sent_mb": 2.0, "accuracy": 50.0, "paper": 61.23}
    assert shown.items() <= found.items()


def test_the_majority_is_that_of_training() -> None:
    """Always x, the first of a tie, is right for one of three test texts at seed 1, and for two at seed 2."""
    both = {1: rows(x=[0], y=[0, 0]), 2: rows(x=[0, 0], y=[0])}
    found = majority_row(both, ACCURACY, {"y": 5, "x": 5})
    assert found == {"run": "always x", "method": "majority", "accuracy": 50.0}
    assert majority_row(both, Metric("f1", "F1", "%", "more", 2), {"x": 1}) is None


# --- settings and data sets -----------------------------------------------------------------------------------------


def test_clients_of_fewer_than_five_steps_are_counted() -> None:
    """Batches of 4, a rest of under 4 joins its neighbour: 19 texts are four steps, 20 are five."""
    label_counts = {"a": {"x": 19}, "b": {"x": 12, "y": 8}, "c": {"y": 1}}
    assert federation_row("s", label_counts, 4)["short"] == 2
    assert federation_row("s", label_counts)["short"] == ""


def test_a_federation_has_its_sizes_and_its_divergence() -> None:
    """Sizes 1 and 3: mean 2, standard deviation 1. Labels x and y have nothing in common: 1 bit. One client: none."""
    shown = {"clients": 2, "texts": 4, "least": 1, "most": 3, "cv": 0.5, "divergence_bits": 1.0}
    assert shown.items() <= federation_row("s", {"a": {"x": 1}, "b": {"y": 3}}).items()
    assert federation_row("s", {"a": {"x": 1}})["divergence_bits"] == 0.0


TASK = "text classification"
PAPER = [
    {"table": table, "task": TASK, "dataset": "20news", "metric": metric, "method": method, "value": value}
    for table, metric, method, value in (
        ("2", "accuracy_fraction", "FedAvg", "0.5142"),
        ("1", "train_examples", "", "11314"),
        ("1", "labels", "", "20"),
    )
]


def test_a_run_has_the_papers_number_of_its_method() -> None:
    found = with_paper([{"run": "tc-fedavg"}, {"run": "tc-mine"}], PAPER, TASK)
    assert [row["paper"] for row in found] == [51.42, ""]
    assert with_paper([{"run": "tc-fedavg"}], PAPER, "") == [{"run": "tc-fedavg"}], "a task that the paper lacks"


def test_a_data_set_has_its_counts_and_the_papers() -> None:
    about = {"train": 9, "val": 2, "test": 3, "labels": None, "owners": 4, "source": {"source": "sample"}}
    ours = {"train": 9, "left_out": 0, "without_answer": 1, "labels": "", "owners": 4, "source": "sample"}
    theirs = {"paper_data": "20news", "paper_train": 11314, "paper_test": "", "paper_labels": 20}
    assert (ours | theirs).items() <= data_row("news", about, 1, TASK, PAPER).items()
