"""The page on the paper: rows of its sections, from numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_results import AVERAGE, TRAINING, figures, results_of, round_of, run_of

from pipeline.evaluation.scores import Figures
from pipeline.report.paper_page import _ending, _other_loss, _row, _span, _steps, paper_table


def test_steps_and_weights_follow_from_the_examples() -> None:
    """Batches of 4: 16 examples are 4 steps, 8 are 2; a fifth example joins the first four; 16 of 29 are 55%."""
    sizes = {client: {"train": count} for client, count in (("A", 16), ("B", 8), ("C", 5))}
    assert _steps({"sizes": sizes}, TRAINING) == [
        {"name": "A", "examples": 16, "share": "55%", "steps": 4},
        {"name": "B", "examples": 8, "share": "28%", "steps": 2},
        {"name": "C", "examples": 5, "share": "17%", "steps": 1},
    ]


def test_a_client_of_which_less_was_drawn_has_the_weight_of_its_true_size() -> None:
    """Ten dialogues that count for nine each are 90 of 100 examples."""
    sizes = {client: {"train": 10} for client in ("A", "SAMSum")}
    found = _steps({"sizes": sizes}, TRAINING.model_copy(update={"weights": {"SAMSum": 9.0}}))
    assert [one["share"] for one in found] == ["10%", "90%"]


def with_losses(**losses: float) -> Figures:
    return replace(figures(loss=1.0), other_losses=losses)


def test_the_last_rounds_loss_is_over_the_clients_of_the_best_one() -> None:
    """SAMSum is easier: with it the last round would look better than it is, (3 + 2.5 + 1) / 3."""
    own = {client: with_losses(last=loss) for client, loss in (("A", 3.0), ("B", 2.5), ("SAMSum", 1.0))}
    assert _ending(own, ["A", "B"]) == "last round: 2.750"


def test_a_last_round_that_not_all_clients_have_is_left_out() -> None:
    assert _ending({"A": with_losses(), "B": with_losses(last=2.5)}, ["A", "B"]) == ""


@pytest.mark.parametrize(("losses", "text"), [({"server": 2.0}, "2.000"), ({"local": 3.0}, "3.000"), ({}, "")])
def test_the_loss_of_a_methods_other_model_is_shown(losses: dict[str, float], text: str) -> None:
    found = _other_loss({"A": with_losses(**losses)}, ["A"])
    assert found.rpartition(" ")[2] == text


@pytest.mark.parametrize(("rounds", "text"), [([], ""), ([2, 2], "2"), ([3, 1, 2], "1–3")])
def test_best_rounds_are_shown_as_a_span(rounds: list[int], text: str) -> None:
    assert _span(rounds) == text


def row(**more: Any) -> dict[str, Any]:
    """Of a run whose clients A and B are best in rounds 1 and 2 of 2; the mean next to others is A's alone."""
    rounds = [round_of(n, client, 2.0, best=n == best) for client, best in (("A", 1), ("B", 2)) for n in (1, 2)]
    known = {"length": 30.4, "reference_length": 20.0, "similarity": 0.5, "repetition": 1.25} | more
    own = {client: figures(spread=0.5, loss=2.0, average=20.0, **known) for client in ("A", "B", "mean")}
    all_of_it = {"mean": figures(loss=9.0, average=30.0)}
    results = results_of(rows={"x": run_of("x")}, histories={"x": rounds}, metrics={"x": all_of_it})
    return _row("x", own, ["A"], results, AVERAGE)


def test_a_row_has_rouge_a_client_and_what_the_summaries_look_like() -> None:
    found = row()
    assert found["cells"]["A"] == {"value": "20.00", "interval": "19.5 … 20.5"}
    assert found["of_all"]["value"] == "30.00", "over all of its clients"
    assert (found["words"], found["surface"], found["loss"]) == ("30 (1.52)", "0.50, 1.25", "2.000")
    assert (found["part"], found["name"], found["rounds"]) == ("AdaFedSelectKD", "x", "1–2")


def test_a_run_without_summaries_has_its_loss_in_each_cell() -> None:
    own = {client: figures(loss=2.0) for client in ("A", "mean")}
    untrained = [run_of("x")[0].model_copy(update={"training": None})]
    results = results_of(rows={"x": untrained}, histories={"x": []}, metrics={"x": own})
    found = _row("x", own, ["A"], results, AVERAGE)
    assert found["cells"]["A"]["value"] == "–"
    assert "2.000" in found["cells"]["A"]["interval"]
    assert (found["words"], found["surface"], found["rounds"]) == ("–", "", "")


def test_a_table_of_the_paper_has_a_row_a_method_and_a_column_a_client() -> None:
    """V has averages alone; of the other the mean of R-1, R-2 and R-L is ours: (30 + 10 + 20) / 3."""
    parts = {"rouge1": "30", "rouge2": "10", "rougeL": "20", "average": ""}
    average = {"rouge1": "", "rouge2": "", "rougeL": "", "average": "21.5"}
    rows = [
        {"table": "III", "backbone": "BART", "client": client, "method": "AdaFedAvg"} | parts for client in ("A", "B")
    ]
    rows.append({"table": "III", "backbone": "BART", "client": "A", "method": "AdaFedKD"} | parts)
    rows.append({"table": "V", "backbone": "BART", "client": "A", "method": "AdaFedAvg"} | average)
    third, fifth = paper_table(rows, "III"), paper_table(rows, "V")
    assert (third["clients"], third["parts"], fifth["parts"]) == (["A", "B"], True, False)
    assert third["rows"][0]["cells"] == [{"value": "20.00", "interval": "30 / 10 / 20"}] * 2
    assert third["rows"][1]["cells"][1] is None, "of a client that the method lacks"
    assert fifth["rows"] == [{"method": "AdaFedAvg", "cells": [{"value": "21.50", "interval": ""}]}]
