"""The report's small texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from made_results import TRAINING, run_of

from pipeline.federated.history import Round
from pipeline.plan.orders import RunRow
from pipeline.report.caveats import of_learning_rate, of_meetings, of_truncation
from pipeline.report.main_page import Column, _note, _ranks
from pipeline.report.naming import labels


def history(best: int, last: int) -> list[Round]:
    return [Round(1, n, "A", None, 2.0, steps=1, best=n == best) for n in range(1, last + 1)]


def test_a_best_round_that_is_the_last_says_not_converged() -> None:
    assert _note(history(3, 3), "A", {}) == "3 (not converged)"


def test_an_earlier_best_round_stands_beside_the_last_ones_loss() -> None:
    assert _note(history(2, 3), "A", {"last_loss": 2.5}) == "2 (test loss of round 3: 2.500)"


def test_each_seed_has_a_last_round_of_its_own() -> None:
    """The second seed stopped two rounds earlier; the loss is the mean of both."""
    rows = history(2, 5) + [replace(one, seed=2) for one in history(1, 3)]
    assert _note(rows, "A", {"last_loss": 2.5}) == "2, 1 (test loss of round 5/3: 2.500)"


def test_a_run_without_training_has_no_round() -> None:
    assert _note([], "A", {}) == ""


def test_a_second_run_of_a_method_adds_its_own_name() -> None:
    rows = [
        RunRow(
            id=f"main/{name}-1",
            name=name,
            seed=1,
            method="AdaFedAvg",
            kind=kind,
            setting="domains",
            spec="",
            training=None,
            evaluate=None,
        )
        for name, kind in (("fedavg", "AdaFedAvg"), ("slow", "AdaFedAvg"), ("fedavg-local", "AdaFedAvg-local"))
    ]
    assert labels(rows) == {"fedavg": "AdaFedAvg", "slow": "AdaFedAvg (slow)", "fedavg-local": "AdaFedAvg-local"}


def test_the_best_and_the_second_of_a_column_are_marked() -> None:
    """More ROUGE is better, and less loss."""
    metrics = {
        run: {"A": {"average": a, "loss": b}} for run, a, b in (("x", 20.0, 2.5), ("y", 21.0, 2.9), ("z", 19.0, 2.7))
    }
    data = SimpleNamespace(metrics=metrics)
    assert _ranks(data, "A", Column("average", "", 2)) == {"y": "best", "x": "second"}
    assert _ranks(data, "A", Column("loss", "", 3, sign=-1)) == {"x": "best", "z": "second"}
    assert _ranks(data, "A", Column("loss", "", 3, ranked=False)) == {}


def test_what_reads_alike_is_marked_alike() -> None:
    """21.001 and 21.004 both read 21.00: both are best; with z as well there is no best."""
    two, all_three = (
        SimpleNamespace(metrics={run: {"A": {"average": a}} for run, a in zip("xyz", values, strict=True)})
        for values in ((21.001, 21.004, 20.0), (21.001, 21.004, 21.0))
    )
    assert _ranks(two, "A", Column("average", "", 2)) == {"x": "best", "y": "best", "z": "second"}
    assert _ranks(all_three, "A", Column("average", "", 2)) == {}


def test_clients_with_few_test_meetings_are_named() -> None:
    """A has ten meetings in one setting and two in the other; B nine, one of them with two examples; C enough."""

    def index(**meetings: Sequence[int]) -> dict[str, Any]:
        return {"clients": {client: {"test": [{"meeting": m} for m in of]} for client, of in meetings.items()}}

    first, second = index(A=range(10), B=[*range(9), 0]), index(A=[1, 2], C=range(30))
    (said,) = of_meetings({"one": first, "other": second})
    assert "some clients have few: A 2 (other); B 9 (one). Resampling" in said
    assert of_meetings({"other": index(C=range(30))}) == []


def test_a_learning_rate_is_spoken_of_where_it_is_not_the_papers() -> None:
    def said(*rates: float) -> str:
        runs = [
            run_of("run")[0].model_copy(update={"training": TRAINING.model_copy(update={"learning_rate": rate})})
            for rate in rates
        ]
        return " ".join(of_learning_rate(runs))

    assert said(0.0002) == ""
    assert said(0.001).startswith("All methods share a learning rate. The server's")
    assert said(0.0024).startswith(
        "All methods share a learning rate; 0.0024, that of the scales laptop and full, was chosen with smollm2"
    )
    assert said(0.0002, 0.0024).startswith("Learning rates differ from run to run; 0.0024, that")


def test_what_truncation_lost_by_hand() -> None:
    """10 of 10 and 30 of 60 tokens kept: one of two examples cut, 30 of 70 tokens (43%) lost; one reference is full."""
    entries = [
        {"transcript_tokens": 10, "kept_tokens": 10, "tokens": 7},
        {"transcript_tokens": 60, "kept_tokens": 30, "tokens": 8},
    ]
    text = of_truncation({"clients": {"A": {"test": entries}}}, 8)
    assert "1 of 2 examples (50%)" in text
    assert "43% of the tokens of transcripts" in text
    assert "References that fill all 8 tokens that are read of one: 1 (50%);" in text
    assert "No reference was cut." in of_truncation({"clients": {"A": {"test": entries}}}, 9)
