"""The page on the paper: rows of its sections, from numbers worked by hand."""

from dataclasses import replace
from typing import Any

import pytest
from made_results import AVERAGE, figures, results_of, round_of, row_of, run_of, table_rows

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures, Scored
from pipeline.report.notes import rounds_cell
from pipeline.report.paper import paper_table
from pipeline.report.paper_page import _other_loss, ahead_by, gains_of, reference_of, section_table, settings_table
from pipeline.tasks.task import LOSS


def with_losses(**losses: float) -> Figures:
    return replace(figures(loss=1.0), other_losses=losses)


@pytest.mark.parametrize(
    ("last", "best", "patience", "cell"),
    [
        ({"A": 3.0, "B": 2.5, "SAMSum": 1.0}, 2, 1, ["2", "last round: 2.750"]),
        ({"B": 2.5}, 1, 1, ["1–2", ""]),
        ({"A": 3.0, "B": 2.5}, 3, 2, ["2–3", "ended by the cap on rounds"]),
        ({}, 0, 1, ["", ""]),
    ],
    ids=["over the clients that are compared", "not all clients have one", "the cap", "a run without training"],
)
def test_best_rounds_and_the_last_ones_loss(last: dict[str, float], best: int, patience: int, cell: list[str]) -> None:
    """Of B round 2 is the best. SAMSum is easier: with it the last round would look better, (3 + 2.5 + 1) / 3."""
    own = {c: with_losses(**{"last": last[c]} if c in last else {}) for c in ("A", "B", "SAMSum")}
    bests = {"A": best, "B": 2} if best else {}
    rounds = [round_of(n, client, 2.0, best=n == of) for client, of in bests.items() for n in range(1, 5)]
    results = results_of(rows={"x": [row_of("x", patience=patience)]}, histories={"x": rounds})
    found = rounds_cell(results, "x", own, ["A", "B"])
    assert [found.text, found.small] == cell


def test_the_loss_of_a_methods_other_model_is_shown() -> None:
    found = [_other_loss({"A": with_losses(**own)}, ["A"]) for own in ({"server": 2.0}, {"local": 3.0}, {})]
    assert found == ["server’s 2.000", "clients’ 3.000", ""]


def row(figures_of: dict[str, Figures], *more: str, ahead: Any = None, **changes: Any) -> list[str]:
    """The row of run x with these figures, next to a run with client A and with others; its mean over all is 30."""
    # Its clients A and B are best in rounds 1 and 2 of 2.
    rounds = [round_of(n, client, 2.0, best=n == best) for client, best in (("A", 1), ("B", 2)) for n in (1, 2)]
    known = {"rows": {"x": run_of("x"), "y": run_of("y")}, "histories": {"x": rounds, "y": []}} | changes
    means = {run: {"mean": figures(loss=9.0, average=30.0)} for run in "xy"}
    compared = {"x": figures_of, "y": dict.fromkeys(("A", *more, "mean"), figures(loss=1.0))}
    return table_rows(section_table(compared, results_of(**known, metrics=means), AVERAGE, "y", ahead or {}))[1]


def test_a_row_has_rouge_a_client_and_what_the_summaries_look_like() -> None:
    """The mean next to y is A's alone; the one over all clients is beside it."""
    surface = {"length": 30.4, "reference_length": 20.0, "similarity": 0.5, "repetition": 1.25}
    own = dict.fromkeys(("A", "B", "mean"), figures(spread=0.5, loss=2.0, average=20.0, **surface))
    score, found = "20.00 19.5 … 20.5", row(own)
    assert found[:5] == ["AdaFedSelectKD x", score, score, score, "30.00 30.0 … 30.0"]
    assert found[5:] == ["30 (1.52) 0.50, 1.25", "2.000", "1–2 ended by the cap on rounds"]
    assert row(own, "B", "C")[1:6] == [score, score, "–", score, "–"], "it lacks a client of y"


def test_a_run_without_summaries_has_its_loss_in_each_cell() -> None:
    own = dict.fromkeys(("A", "mean"), figures(loss=2.0))
    untrained = [run_of("x")[0].model_copy(update={"training": None})]
    found = row(own, rows=dict.fromkeys("xy", untrained), histories={"x": [], "y": []})
    assert found[1:] == ["– loss 2.000", "– loss 2.000", "–", "2.000", ""]
    assert row(own, ahead={"x": {"loss": "+0.1"}})[3] == "– +0.1", "of a run without summaries"


def scored(client: str, average: float, loss: float) -> list[Scored]:
    """Eight meetings alike, one example each of ten tokens."""
    return [Scored(f"{client}/{n}", client, f"m{n}", 10, {"average": average, "loss": 10 * loss}) for n in range(8)]


def test_a_gain_is_the_mean_over_the_clients_and_seeds_that_both_runs_have() -> None:
    """In ROUGE (1 + 3) / 2 = 2; in loss (0.5 + 0.1) / 2 = 0.3 nats less. SAMSum and seed 2 are left out."""
    own = {"fedselectkd": scored("A", 20.0, 2.0) + scored("B", 24.0, 3.0)}
    own["wide"] = scored("A", 19.0, 2.5) + scored("B", 21.0, 3.1) + scored("SAMSum", 40.0, 1.0)
    own["mute"] = [replace(row, values={"loss": 30.0}) for row in scored("A", 0.0, 0.0) + scored("B", 0.0, 0.0)]
    clients = {name: list(dict.fromkeys(row.client for row in rows)) for name, rows in own.items()}
    metrics = {name: {client: figures() for client in [*those, "mean"]} for name, those in clients.items()}
    second = {"fedselectkd": scored("A", 40.0, 2.0) + scored("B", 44.0, 3.0)}
    results = results_of(scored_by_seed={1: own, 2: second}, metrics=metrics)
    gains = gains_of(["fedselectkd", "wide"], results, (AVERAGE, LOSS), 2000)
    found = {pair: round(one.value, 6) for pair, one in gains.items()}
    assert found == {(one, "fedselectkd", "wide"): gain for one, gain in (("average", 2.0), ("loss", 0.3))}
    assert all(one.low <= one.value <= one.high for one in gains.values())
    mute = gains_of(["fedselectkd", "mute"], results, (AVERAGE, LOSS), 2000)
    assert [metric for metric, _, _ in mute] == ["loss"], "a run without summaries"


def test_what_the_reference_is_ahead_by_is_its_gain_or_the_others_turned() -> None:
    gain, zero = Interval(1.0, -0.5, 2.0), Interval(0.0, 0.0, 0.0)
    gains = {("average", "ours", "a"): gain, ("average", "b", "ours"): gain, ("average", "c", "ours"): zero}
    found = {run: own["average"] for run, own in ahead_by(gains, "ours", (AVERAGE, LOSS)).items()}
    assert found == {"a": "+1.00 (−0.50 … +2.00)", "b": "−1.00 (−2.00 … +0.50)", "c": "0.00 (0.00 … 0.00)"}


def test_the_reference_is_the_first_run_of_our_method_in_params() -> None:
    other = [row_of("other", part="AdaFedAvg")]
    results = results_of(rows={"other": other} | {name: run_of(name) for name in ("fedselectkd", "tau-2")})
    found = [reference_of(runs, results) for runs in (["tau-2", "fedselectkd"], ["other", "tau-2"], ["other"])]
    assert found == ["fedselectkd", "tau-2", None]


def test_a_table_of_the_paper_has_a_row_a_method_and_a_column_a_client() -> None:
    """V has averages alone; of the other the mean of R-1, R-2 and R-L is ours: (30 + 10 + 20) / 3."""
    known = {"table": "III", "backbone": "BART", "client": "A", "method": "AdaFedAvg"}
    parts = known | {"rouge1": "30", "rouge2": "10", "rougeL": "20", "average": ""}
    fifth_row = known | {"table": "V", "rouge1": "", "rouge2": "", "rougeL": "", "average": "21.5"}
    rows = [parts, parts | {"client": "B"}, parts | {"method": "AdaFedKD"}, fifth_row]
    third, fifth = paper_table(rows, "III"), paper_table(rows, "V")
    assert third["note"] == "Table III: average ROUGE, and R-1 / R-2 / R-L."
    assert fifth["note"] == "Table V: average ROUGE."
    both = "20.00 30 / 10 / 20"
    assert table_rows(third["table"]) == [["BART", "A", "B"], ["AdaFedAvg", both, both], ["AdaFedKD", both, "–"]]
    assert table_rows(fifth["table"])[1:] == [["AdaFedAvg", "21.50"]]


def test_a_setting_has_its_clients_examples_and_what_truncation_lost() -> None:
    sizes = {client: {"train": 3, "val": 1, "test": 2} for client in "AB"}
    cut = {"examples": 12, "cut": 6, "of_tokens": 0.75, "of_transcript": 0.5, "full": 0, "limit": 9}
    results = {"base": {"sizes": sizes, "cut": cut}, "lead": {"sizes": {}, "cut": None}}
    first, second = table_rows(settings_table(results))[1:]
    assert first[:2] == ["base", "A 3/1/2, B 3/1/2"]
    assert "75%" in first[2]
    assert second == ["lead", "", ""]
