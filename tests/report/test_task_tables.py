"""Tables of tasks with labels, with numbers worked by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest
from made_results import CLASSIFY, LEARNER, TRAINING, row_of

from pipeline.clients.skews import SERVER
from pipeline.corpora.labelled import Labelled
from pipeline.evaluation.intervals import Interval
from pipeline.report import task_tables
from pipeline.report.task_tables import (
    Outcome,
    client_row,
    cost_row,
    data_row,
    federation_row,
    majority_row,
    method_row,
    score_of,
)
from pipeline.tasks.task import load_task

ENCODER = LEARNER.model_copy(update={"view": LEARNER.view.model_copy(update={"frozen": "e,0-1"})})


def rows(**scores: list[float]) -> list[dict[str, Any]]:
    """Texts of a label each, with a loss of 1 and 3 nats in turn."""
    labelled = [(label, score) for label, own in scores.items() for score in own]
    return [
        {"id": f"t{i}", "group": f"t{i}", "client": SERVER, "label": label, "accuracy": score}
        | {"loss_sum": 1.0 + 2 * (i % 2), "items": 1}
        for i, (label, score) in enumerate(labelled)
    ]


def outcome(*scored: list[dict[str, Any]], best: tuple[float, ...] = ()) -> Outcome:
    """A run of 10 trainable numbers that sends 2 MB a seed, with these test rows at seeds 1, 2, …"""
    row, results = row_of("tc-fedavg", method="AdaFedAvg", learner=ENCODER), {}
    for seed, own in enumerate(scored, 1):
        scores = {"examples": own} | (
            {"best": [{"id": "x", "client": SERVER, "accuracy": best[seed - 1]}]} if best else {}
        )
        history = [{"round": "1", "validation_loss": "1", "bytes_up": "500000", "bytes_down": "500000"}] * 2
        results[seed] = {"scores": scores, "history": history, "parameters": 10}
    return Outcome(row, load_task(CLASSIFY).metrics, results)


def test_a_run_counts_the_documents_that_its_clients_trained_and_the_places_that_it_chose() -> None:
    """Two rounds of all clients with 3 and 5 texts: 16 an epoch. Of both seeds 3 of 4 chosen units are first ones."""
    made = outcome(rows(x=[100]), rows(x=[100]))
    training = TRAINING.model_copy(update={"local_epochs": 2, "algorithm": "pipeline.federated.algorithms.fedavg"})
    for seed, places in ((1, [2, 0]), (2, [1, 1])):
        made.results[seed]["sizes"] = {"a": {"train": 3}, "b": {"train": 5}, SERVER: {"train": 0}}
        made.results[seed]["history"] = [{"round": "1"}, {"round": "2"}]
        made.results[seed]["scores"]["places"] = places
    found = replace(made, row=made.row.model_copy(update={"training": training}))
    assert (found.documents, found.places) == (32, [(1, 0.75), (2, 0.25)])


def test_figures_over_clients_are_means_of_seeds() -> None:
    """Seed 1: client a 100, b 0, c has no label that is tested. Seed 2: a 50, b 50. (50 + 50) / 2 and (0 + 50) / 2."""
    made = outcome(rows(x=[100, 100], y=[0, 0]), rows(x=[100, 0], y=[0, 100]), best=(40.0, 60.0))
    label_counts = {1: {"a": {"x": 3}, "b": {"y": 1}, "c": {"z": 1}}, 2: {"a": {"x": 3}, "b": {"y": 1}}}
    found = method_row(made, label_counts, 100)
    assert (found["accuracy"], found["by_seed"], found["loss"], found["at_best_round"]) == (
        50.0,
        "50.0 / 50.0",
        2.0,
        50.0,
    )
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
    found = method_row(outcome(*(rows(x=own) for own in scored)), label_counts, 100)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == cells


def test_clients_with_test_texts_are_scored_by_these_alone() -> None:
    """Both have label x: a's two texts score 100, b's two 0."""
    own = [text | {"client": client} for text, client in zip(rows(x=[100, 100, 0, 0]), "aabb", strict=True)]
    found = method_row(outcome(own), {1: {"a": {"x": 2}, "b": {"x": 2}}}, 100)
    assert (found["clients_mean"], found["worst_tenth"], found["not_judged"]) == (50.0, 0.0, "")
    shown = {"a": 100.0, "b": 0.0, "clients_mean": 50.0, "worst_tenth": 0.0}
    assert client_row(outcome(own)) == {"run": "tc-fedavg"} | shown


@pytest.mark.parametrize(("low", "high", "ends"), [(-0.04, 0.81, (0.0, 0.81)), (math.nan, math.nan, ("", ""))])
def test_a_scores_interval_does_not_go_below_0(
    low: float, high: float, ends: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where hardly a span is named, the linear interval would."""
    monkeypatch.setattr(task_tables.pooled, "with_interval", lambda *_: Interval(0.3, low, high))
    assert score_of(outcome(rows(x=[1.0])), 100) == {"accuracy": 0.3, "low": ends[0], "high": ends[1]}


def test_a_cost_has_what_trains_what_is_sent_and_the_score() -> None:
    found = cost_row(outcome(rows(x=[100, 0])), 100, 61.234)
    shown = {"frozen": "e,0-1", "parameters": 10, "sent_mb": 2.0, "accuracy": 50.0, "paper": 61.23}
    assert shown.items() <= found.items()


def test_the_majority_is_that_of_training() -> None:
    """Always x, the first of a tie, is right for one of three test texts at seed 1, and for two at seed 2."""
    both = outcome(rows(x=[0], y=[0, 0]), rows(x=[0, 0], y=[0]))
    found = majority_row(both, CLASSIFY, {"a": {"y": 5}, "b": {"x": 5}})
    assert found == {"run": "always x", "method": "majority", "accuracy": 50.0}
    assert majority_row(both, "pipeline.tasks.tag", {"a": {"x": 1}}) is None


class Topics:
    """A task whose class is the first part of a label."""

    kind = Labelled

    def __init__(self, *known: str) -> None:
        self.known = known

    def classes(self, texts: list[Labelled]) -> tuple[str, ...]:
        return self.known or tuple(sorted({text.label.partition(".")[0] for text in texts}))


def test_the_majority_is_of_the_classes_that_the_task_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of labels rec.autos is the most frequent, of topics sci: three of four test texts. A fixed list says nothing."""
    tested = {"rec.autos": [0.0], "sci.med": [0.0], "sci.space": [0.0, 0.0]}
    made, counts = outcome(rows(**tested)), {"a": {"rec.autos": 3, "sci.med": 2, "sci.space": 2}}
    monkeypatch.setattr(task_tables, "load_task", lambda _: Topics())
    assert majority_row(made, "", counts) == {"run": "always sci", "method": "majority", "accuracy": 75.0}
    monkeypatch.setattr(task_tables, "load_task", lambda _: Topics("rec", "sci"))
    assert majority_row(made, "", counts) is None


def test_a_federation_has_its_sizes_and_its_divergence() -> None:
    """Sizes 1 and 3: mean 2, standard deviation 1. Labels x and y have nothing in common: 1 bit. One client: none."""
    shown = {"clients": 2, "texts": 4, "least": 1, "most": 3, "cv": 0.5, "divergence_bits": 1.0}
    assert shown.items() <= federation_row({"a": {"x": 1}, "b": {"y": 3}}).items()
    assert federation_row({"a": {"x": 1}})["divergence_bits"] == 0.0


TASK = "text classification"
PAPER = [
    {"table": table, "task": TASK, "dataset": "20news", "metric": metric, "method": method, "value": value}
    for table, metric, method, value in (
        ("2", "accuracy_fraction", "FedAvg", "0.5142"),
        ("1", "train_examples", "", "11314"),
        ("1", "labels", "", "20"),
    )
]


def test_a_data_set_has_its_counts_and_the_papers() -> None:
    about = {"train": 9, "val": 2, "test": 3, "labels": None, "owners": 4, "source": {"source": "sample"}}
    about |= {"equal": {"test_in_train": 2}}
    ours = {
        "train": 9,
        "left_out": 0,
        "test_in_train": 2,
        "without_answer": 1,
        "labels": "",
        "owners": 4,
        "source": "sample",
    }
    theirs = {"paper_data": "20news", "paper_train": 11314, "paper_test": "", "paper_labels": 20}
    assert (ours | theirs).items() <= data_row("news", about, 1, TASK, PAPER).items()
