"""Tables of tasks with labels, with numbers worked by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from made_results import CLASSIFY, LEARNER, TRAINING, row_of

from pipeline.clients.skews import SERVER
from pipeline.corpora.labelled import Labelled
from pipeline.evaluation.intervals import Interval
from pipeline.report import task_tables
from pipeline.report.task_tables import Outcome, federation_row, majority_row, method_row
from pipeline.tasks.task import load_task

ENCODER = LEARNER.model_copy(update={"view": LEARNER.view.model_copy(update={"frozen": "e,0-1"})})


def rows(**scores: list[float]) -> list[dict[str, Any]]:
    """Texts of a label each, with a loss of 1 and 3 nats in turn."""
    common = {"client": SERVER, "items": 1}
    labelled = [common | {"label": label, "accuracy": score} for label, own in scores.items() for score in own]
    return [one | {"id": f"t{i}", "group": f"t{i}", "loss_sum": 1.0 + 2 * (i % 2)} for i, one in enumerate(labelled)]


def outcome(*scored: list[dict[str, Any]], best: tuple[float, ...] = ()) -> Outcome:
    """A run of 10 trainable numbers that sends 2 MB a seed, with these test rows at seeds 1, 2, …"""
    history = [{"round": "1", "validation_loss": "1", "bytes_up": "500000", "bytes_down": "500000"}] * 2
    row, results = row_of("tc-fedavg", method="AdaFedAvg", learner=ENCODER), {}
    for seed, own in enumerate(scored, 1):
        more = {"best": [{"id": "x", "client": SERVER, "accuracy": best[seed - 1]}]} if best else {}
        results[seed] = {"scores": {"examples": own} | more, "history": history, "parameters": 10}
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
    shown = {"accuracy": 50.0, "by_seed": "50.0 / 50.0", "loss": 2.0, "at_best_round": 50.0}
    assert shown.items() <= method_row(made, label_counts, 100).items()
    assert over_clients(made, label_counts) == (50.0, 25.0, "0.5")


def over_clients(made: Outcome, label_counts: dict[int, Any]) -> tuple[Any, ...]:
    found = method_row(made, label_counts, 100)
    return found["clients_mean"], found["worst_tenth"], found["not_judged"]


def test_clients_that_cannot_be_scored_are_counted_as_a_mean_over_seeds() -> None:
    """At one seed of three client b has a label that no test text has. At last no label is tested."""
    label_counts = {1: {"a": {"x": 1}, "b": {"z": 1}}, 2: {"a": {"x": 1}}, 3: {"a": {"x": 1}}}
    assert over_clients(outcome(*[rows(x=[100])] * 3), label_counts) == (100, 100, "0.33")
    assert over_clients(outcome(rows(x=[100, 0])), {1: {"a": {"z": 1}}}) == ("", "", "1")


def test_clients_with_test_texts_are_scored_by_these_alone() -> None:
    """Both have label x: a's two texts score 100, b's two 0."""
    own = [text | {"client": client} for text, client in zip(rows(x=[100, 100, 0, 0]), "aabb", strict=True)]
    assert over_clients(outcome(own), {1: {"a": {"x": 2}, "b": {"x": 2}}}) == (50.0, 0.0, "")
    shown = {"a": 100.0, "b": 0.0, "clients_mean": 50.0, "worst_tenth": 0.0}
    assert task_tables.client_row(outcome(own)) == {"run": "tc-fedavg"} | shown


def test_a_scores_interval_does_not_go_below_0_and_a_point_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly a span is named, the linear interval would."""
    for interval, low, high in ((Interval(0.3, -0.04, 0.81), 0.0, 0.81), (Interval(0.3, 0, 0).alone(), "", "")):
        monkeypatch.setattr(task_tables.pooled, "with_interval", lambda *_, found=interval: found)
        assert task_tables.score_of(outcome(rows(x=[1.0])), 100) == {"accuracy": 0.3, "low": low, "high": high}


def test_a_cost_has_what_trains_what_is_sent_and_the_score() -> None:
    found = task_tables.cost_row(outcome(rows(x=[100, 0])), 100, 61.234)
    shown = {"frozen": "e,0-1", "parameters": 10, "sent_mb": 2.0, "accuracy": 50.0, "paper": 61.23}
    assert shown.items() <= found.items()


def test_the_majority_is_that_of_training() -> None:
    """Always x, the first of a tie, is right for one of three test texts at seed 1, and for two at seed 2."""
    both = outcome(rows(x=[0], y=[0, 0]), rows(x=[0, 0], y=[0]))
    found = majority_row(both, CLASSIFY, {"a": {"y": 5}, "b": {"x": 5}})
    assert found == {"run": "always x", "method": "majority", "accuracy": 50.0}
    assert majority_row(both, "pipeline.tasks.tag", {"a": {"x": 1}}) is None


def test_the_majority_is_of_the_classes_that_the_task_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of labels rec.autos is the most frequent, of topics sci: three of four test texts. A fixed list says nothing."""
    tested = {"rec.autos": [0.0], "sci.med": [0.0], "sci.space": [0.0, 0.0]}
    made, counts = outcome(rows(**tested)), {"a": {"rec.autos": 3, "sci.med": 2, "sci.space": 2}}
    task = SimpleNamespace(kind=Labelled, classes=lambda texts: (texts[0].label.partition(".")[0],))
    monkeypatch.setattr(task_tables, "load_task", lambda _: task)
    assert majority_row(made, "", counts) == {"run": "always sci", "method": "majority", "accuracy": 75.0}
    task.classes = lambda _: ("rec", "sci")
    assert majority_row(made, "", counts) is None


def test_a_federation_has_its_sizes_and_its_divergence() -> None:
    """Sizes 1 and 3: mean 2, standard deviation 1. Labels x and y have nothing in common: 1 bit. One client: none."""
    shown = {"clients": 2, "texts": 4, "least": 1, "most": 3, "cv": 0.5, "divergence_bits": 1.0}
    assert shown.items() <= federation_row({"a": {"x": 1}, "b": {"y": 3}}).items()
    assert federation_row({"a": {"x": 1}})["divergence_bits"] == 0.0


def test_a_data_set_has_its_counts_and_the_papers() -> None:
    """The paper's are in its first table."""
    about = {"train": 9, "val": 2, "test": 3, "labels": None, "owners": 4, "source": {"source": "sample"}}
    about |= {"equal": {"test_in_train": 2}}
    known = {"task": "t", "dataset": "20news"}
    paper = [known | {"table": "2", "metric": "accuracy_fraction", "value": "0.5142"}]
    counts = {"train_examples": "11314", "labels": "20"}
    paper += [known | {"table": "1", "metric": metric, "value": count} for metric, count in counts.items()]
    ours = {"train": 9, "left_out": 0, "test_in_train": 2, "without_answer": 1}
    ours |= {"labels": "", "owners": 4, "source": "sample"}
    theirs = {"paper_data": "20news", "paper_train": 11314, "paper_test": "", "paper_labels": 20}
    assert (ours | theirs).items() <= task_tables.data_row("news", about, 1, "t", paper).items()
