"""The table of one seed made otherwise: as records of a file, as rows of a page, and as lines of a figure."""

from __future__ import annotations

from typing import Any

from made_results import AT_LIMIT, AVERAGE, LENGTH

from pipeline.evaluation.scores import over_seeds
from pipeline.report.otherwise import (
    KEPT,
    TITLES,
    other_columns,
    other_tables,
    otherwise_records,
    tables_otherwise,
    written_by_round,
)
from pipeline.runs.audits import ANEW, BEAMS, ROUNDS, Audited
from pipeline.tasks.task import LOSS

TRAINED = {"fedavg": "key"}
METRICS = (AVERAGE, LENGTH, AT_LIMIT, LOSS)


def example(run: str, client: str, average: float, length: float = 40.0) -> dict[str, Any]:
    """Of a reference with 50 words and 10 tokens, each 2.5 nats."""
    return {
        "run": run,
        "id": f"{client}/0",
        "client": client,
        "meeting": client,
        "tokens": 10,
        "loss_sum": 25.0,
        "average": average,
        "length": length,
        "reference_length": 50.0,
        "at_limit": 100.0,
    }


def audits() -> dict[str, Audited]:
    """AdaFedAvg at two clients: written once more, by beams, and with a later round of client B."""
    return {
        ANEW: Audited(TRAINED, [example("fedavg", "A", 20.0), example("fedavg", "B", 22.0)]),
        BEAMS: Audited(TRAINED, [example("fedavg", "A", 21.0, 30.0), example("fedavg", "B", 23.0, 20.0)]),
        ROUNDS: Audited(
            TRAINED,
            [example("fedavg", "A", 20.0), example("fedavg", "B", 24.0)],
            {"fedavg": {"A": (2, 2), "B": (2, 3)}},
        ),
    }


def records() -> list[dict[str, Any]]:
    own = [example("fedavg", "A", 19.0), example("fedavg", "B", 20.0)]
    kept = {"fedavg": over_seeds([[{k: v for k, v in row.items() if k != "run"} for row in own]])}
    return otherwise_records(tables_otherwise(audits(), kept), None, "average")


def test_each_table_has_every_client_and_their_mean() -> None:
    found = {(one["table"], one["client"]): one for one in records()}
    assert [found[table, "mean"]["average"] for table in (KEPT, ANEW, ROUNDS, BEAMS)] == [19.5, 21.0, 22.0, 22.0]
    assert found[BEAMS, "B"]["length"] == 20.0
    assert found[BEAMS, "mean"]["loss"] == 2.5


def test_an_audit_stands_beside_the_same_models_written_by_the_same_code() -> None:
    """The table itself moves from 19.5 to 21 where nothing is changed; beams then bring one point, of shorter texts."""
    found = other_tables(records(), audits(), METRICS)
    assert other_columns(METRICS)[1:4] == ["AdaFedSelectKD ahead by", AVERAGE.title, LENGTH.title]
    anew, beams = found[TITLES[ANEW]], found["Summaries by a search with 4 beams, not by a greedy one"]
    assert anew == [["fedavg", "", "19.50 → 21.00", "40.0 (0.80) → 40.0 (0.80)", "100.0 → 100.0", "2.500 → 2.500", ""]]
    assert beams == [["fedavg", "", "21.00 → 22.00", "40.0 (0.80) → 25.0 (0.50)", "100.0 → 100.0", "2.500 → 2.500", ""]]


def test_rounds_that_are_others_are_named() -> None:
    rows = [rows for title, rows in other_tables(records(), audits(), METRICS).items() if "validation" in title]
    assert [row[-1] for own in rows for row in own] == ["B 2 → 3"]


def test_our_gain_is_told_with_its_interval_in_each_table() -> None:
    """Ours is ahead of AdaFedAvg by 1 and by 3 points at its clients: 2 in their mean."""
    ours = [example("ours", "A", 21.0), example("ours", "B", 25.0)]
    made = {ANEW: Audited({}, [*ours, example("fedavg", "A", 20.0), example("fedavg", "B", 22.0)])}
    found = otherwise_records(tables_otherwise(made, {}), "ours", "average")
    ahead = {one["run"]: one["ahead"] for one in found if one["client"] == "mean"}
    assert ahead == {"ours": None, "fedavg": 2.0}
    assert {one["ahead"] for one in found if one["client"] != "mean"} == {None}


def test_a_gain_of_too_few_meetings_is_told_without_an_interval() -> None:
    ours = [example("ours", "A", 21.0), example("ours", "B", 25.0)]
    theirs = [example("fedavg", "A", 20.0), example("fedavg", "B", 22.0)]
    made = {ANEW: Audited({}, [*ours, *theirs]), BEAMS: Audited({}, [*ours, *theirs])}
    rows = other_tables(otherwise_records(tables_otherwise(made, {}), "ours", "average"), made, METRICS)
    assert [row[1] for own in rows.values() for row in own] == ["", "+2.00 → +2.00"]


def test_without_an_audit_there_is_no_table() -> None:
    assert tables_otherwise({}, {"fedavg": []}) == {}


def test_a_round_is_the_mean_of_its_clients() -> None:
    """Round 1 of x: (10 + 20) / 2; of round 2 client A alone wrote."""
    rows = [
        {"run": "x", "client": "A", "round": 2, "average": 12.0},
        {"run": "x", "client": "A", "round": 1, "average": 10.0},
        {"run": "x", "client": "B", "round": 1, "average": 20.0},
        {"run": "y", "client": "A", "round": 1, "average": 5.0},
    ]
    assert written_by_round(rows, "average") == {"x": [(1, 15.0), (2, 12.0)], "y": [(1, 5.0)]}
