"""The page on the main table: its rows, marks and notes, from numbers worked by hand."""

from dataclasses import replace

import pytest
from made_results import SUMMARIZE, figures, order_of, results_of, row_of, table_rows

from pipeline.evaluation.comparisons import Comparisons
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures
from pipeline.report.main_page import MainData, main_table
from pipeline.report.notes import looks
from pipeline.report.summaries import lens
from pipeline.tasks.task import LOSS, load_task

METRICS = (*load_task(SUMMARIZE).metrics, LOSS)
PLACE = {metric.name: place for place, metric in enumerate(METRICS, 1)}
"""Metric -> its column of the main table."""
MARKED = [
    ("average", (20.0, 21.0, 19.0), ["20.00††", "21.00†", "19.00"]),
    ("loss", (2.5, 2.9, 2.7), ["2.500†", "2.900", "2.700††"]),
    ("length", (1.0, 2.0, 3.0), ["1.0", "2.0", "3.0"]),  # no better for being long
    ("repetition", (1.0, 2.0, 3.0), ["1.0", "2.0", "3.0"]),
    ("average", (21.001, 21.004, 20.0), ["21.00†", "21.00†", "20.00††"]),
    ("average", (21.001, 21.004, 21.0), ["21.00", "21.00", "21.00"]),
]


def scores(**values: float) -> Figures:
    """Every metric of the page, by default 1, with intervals of half a point to both sides."""
    return figures(7, spread=0.5, **{name: values.get(name, 1.0) for name in PLACE})


def rows_of(own: dict[str, Figures], clients: tuple[str, ...] = ("A",)) -> list[list[str]]:
    """The main table of untrained runs with these figures at each client."""
    rows = {run: [row_of(run, part=run)] for run in own}
    metrics = {run: dict.fromkeys([*clients, "mean"], found) for run, found in own.items()}
    results = results_of(rows=rows, metrics=metrics, histories=dict.fromkeys(own, ()))
    order = order_of([row for (row,) in rows.values()])
    return table_rows(main_table(MainData(order, Comparisons(question="Q?"), (), {}, results, METRICS), results))[1:]


def test_a_group_of_runs_a_client_and_one_for_the_mean() -> None:
    groups = [row[0] for row in rows_of({"x": scores()}, ("A", "B"))]
    assert groups[::2] == [f"{name} (7 test examples)" for name in ("A", "B", "Mean over clients")]
    assert groups[1::2] == ["x"] * 3


def test_a_cell_has_the_digits_of_its_metric_and_its_interval() -> None:
    """44 words where the references have 40 are 1.1 times as many."""
    own = scores(average=20.126, length=44.0)
    own = replace(own, metrics=own.metrics | {"reference_length": Interval(40, 39, 41)})
    row, texts = rows_of({"x": own})[1], ["20.13 19.63 … 20.63", "1.000 0.500 … 1.500", "44.0 (1.10) 43.5 … 44.5"]
    assert [row[PLACE[name]] for name in ("average", "loss", "length")] == texts


@pytest.mark.parametrize(("metric", "values", "texts"), MARKED)
def test_the_best_and_the_second_of_a_column_are_marked(metric: str, values: list[float], texts: list[str]) -> None:
    rows = rows_of({run: scores(**{metric: value}) for run, value in zip("xyz", values, strict=True)})
    assert [row[PLACE[metric]].split()[0] for row in rows[1:4]] == texts


def test_a_run_has_a_label_of_its_own_and_a_method_one_colour() -> None:
    parts = {"fedavg": "AdaFedAvg", "slow": "AdaFedAvg", "fedavg-local": "AdaFedAvg-local"}
    found = looks([row_of(name, part=part) for name, part in parts.items()]).values()
    assert [one.label for one in found] == ["AdaFedAvg", "AdaFedAvg (slow)", "AdaFedAvg-local"]
    first, second, third = (one.colour for one in found)
    assert first == second != third


def test_a_word_under_the_lens_has_its_first_tokens_entropy() -> None:
    """τ = 2: a word at 1 nat is distilled, one at 3 is not. The darkest is at 2 τ = 4 nats. A dot is no word."""
    item = {"id": "e", "client": "A", "pieces": ["We", " meet", "ing", "."], "entropy": [1.0, 3.0, 9.0, 0.5]}
    (shown,) = lens([item], 2.0, {"run": [{"id": "e", "query": "Q?"}]})
    assert (shown["client"], shown["query"]) == ("A", "Q?")
    words = [("We", 1.0, 0.15, True), (" meeting", 3.0, 0.45, False), (".", 0.5, 0.0, False)]
    assert [(*own[:2], round(own[2], 6), own[3]) for own in (tuple(w.values()) for w in shown["words"])] == words
