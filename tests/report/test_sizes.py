"""What pooling gains by data size, from numbers worked by hand."""

from __future__ import annotations

import pytest
from made_results import AVERAGE, run_of

from pipeline.evaluation.scores import Scored
from pipeline.plan.orders import RunRow
from pipeline.report.figures import sizes as figure
from pipeline.report.sizes import Size, rows_of, sizes_of, table
from pipeline.tasks.task import LOSS

HELD = {"third": {"A": 10.0, "B": 20.0}, "domains": {"A": 30.0, "B": 60.0}}


def row(method: str, setting: str) -> list[RunRow]:
    return [run_of(f"{method}-{setting}")[0].model_copy(update={"method": method, "setting": setting})]


def scores(average: float, loss: float) -> list[Scored]:
    """Ten meetings a client, all alike, of one token each."""
    return [Scored(f"{c}{n}", c, f"{c}{n}", 1, {"average": average, "loss": loss}) for c in "AB" for n in range(10)]


@pytest.fixture
def found() -> list[Size]:
    """Pooling gains 2 ROUGE and 0.5 nats at a third, and loses 1 and 0.25 with all examples; AdaFedAvg is no part."""
    rows = {
        "single": row("AdaSingle", "domains"),
        "pooled": row("AdaCentralized", "domains"),
        "single-third": row("AdaSingle", "third"),
        "pooled-third": row("AdaCentralized", "third"),
        "fedavg": row("AdaFedAvg", "domains"),
        "lonely": row("AdaSingle", "tenth"),
    }
    made = {"single": (20, 2.5), "pooled": (19, 2.75), "single-third": (18, 3.0), "pooled-third": (20, 2.5)}
    scored = {name: scores(*made.get(name, (1, 1))) for name in rows}
    return sizes_of(rows, scored, HELD, (AVERAGE, LOSS), 500)


def test_a_gain_is_pooled_less_alone_with_more_being_better(found: list[Size]) -> None:
    assert [(size.setting, size.examples) for size in found] == [("third", 30.0), ("domains", 90.0)]
    gains = [{m: [own[c].value for c in ("A", "B", "mean")] for m, own in size.gains.items()} for size in found]
    assert gains == [{"average": [2.0] * 3, "loss": [0.5] * 3}, {"average": [-1.0] * 3, "loss": [-0.25] * 3}]


def test_clients_of_few_meetings_have_points(found: list[Size]) -> None:
    assert found[0].gains["loss"]["A"].is_point
    assert found[0].gains["loss"]["mean"].ends == pytest.approx((0.5, 0.5))


def test_a_file_has_a_row_a_size_metric_and_client(found: list[Size]) -> None:
    rows = rows_of(found)
    assert len(rows) == 2 * 2 * 3
    assert rows[0] == {
        "setting": "third",
        "metric": "average",
        "client": "A",
        "examples": 10.0,
        "gain": 2.0,
        "low": None,
        "high": None,
    }
    assert (rows[2]["client"], rows[2]["examples"], rows[2]["low"]) == ("mean", 30.0, 2.0)


def test_the_table_says_what_is_held_and_gained(found: list[Size]) -> None:
    text = table(found, (AVERAGE, LOSS))
    assert "A 10, B 20" in text
    assert "+2.00 (+2.00 … +2.00)" in text
    assert "−0.250" in text


def test_a_panel_a_metric_has_a_line_a_client_and_the_mean(found: list[Size]) -> None:
    rouge, loss = figure.draw(found, (AVERAGE, LOSS)).axes
    assert [list(line.get_ydata()) for line in rouge.lines[1:3]] == [[2.0, -1.0]] * 2
    assert list(loss.lines[3].get_xdata()) == [30.0, 90.0]
    assert (rouge.get_ylabel(), loss.get_ylabel()) == (
        "gain of pooling, average ROUGE",
        "gain of pooling, nats a token",
    )
