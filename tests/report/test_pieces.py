"""Pieces of the page on the paper, from numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_results import TRAINING, results_of, round_of, run_of

from pipeline.evaluation.scores import Scored
from pipeline.federated.history import client_rounds
from pipeline.report import cases, extras, raters, sending, teachers
from pipeline.report.canvas import Canvas
from pipeline.report.figures import comparison, heatmap, learning_curves, share_distilled, traffic
from pipeline.report.figures.communication import path_of
from pipeline.report.naming import colours
from pipeline.report.paper_page import _ending, _first_rounds, _steps
from pipeline.runs.results import common_clients


def test_bytes_add_up_over_rounds_and_are_a_mean_over_seeds() -> None:
    """Two clients send 1 MB up and 2 MB down a round: 6 MB, then 12; a second seed with the same traffic adds none."""
    rows = [
        round_of(number, client, loss, seed, bytes_up=1_000_000, bytes_down=2_000_000)
        for seed in (1, 2)
        for number, loss in ((1, 3.0), (2, 2.0))
        for client in ("A", "B")
    ]
    assert path_of(rows) == [(6.0, 3.0), (12.0, 2.0)]
    assert path_of(rows, 10.0) == [(60.0, 3.0), (120.0, 2.0)]


def test_a_seed_that_stopped_early_goes_on_with_its_last_value() -> None:
    """Losses 3.0 and 2.9, and 2.0 alone: without the 2.0 the mean would rise from 2.5 to 2.9. It sends no more, too."""
    rows = [
        round_of(1, "A", 3.0, bytes_up=1_000_000),
        round_of(2, "A", 2.9, bytes_up=1_000_000),
        round_of(1, "A", 2.0, 2, bytes_up=1_000_000),
    ]
    assert path_of(rows) == [(1.0, 2.5), (1.5, pytest.approx(2.45))]


def test_the_case_is_the_median_gain_not_the_best() -> None:
    """Gains of 9, −4 and 1: the third example is shown."""
    gains = {"x": 9.0, "y": -4.0, "z": 1.0}
    ours = [Scored(i, "A", "m", 1, {"average": 20 + gain}) for i, gain in gains.items()]
    theirs = [Scored(i, "A", "m", 1, {"average": 20.0}) for i in gains]
    texts = {
        run: {i: {"query": f"Q {i}?", "reference": "R", "prediction": f"{run} on {i}"} for i in gains}
        for run in ("ours", "theirs")
    }
    (piece,) = cases.median_cases(results_of(scored={"ours": ours, "theirs": theirs}), texts, "ours", "theirs")
    assert "A: Q z?" in piece
    assert "ours on z" in piece
    assert "difference +1.00" in piece
    assert cases.median_cases(results_of(scored={"ours": ours}), texts, "ours", "theirs") == []


def test_steps_and_weights_follow_from_the_examples() -> None:
    """Batches of 4: 16 examples are 4 steps, 5 are 2; 16 of 21 are 76%."""
    index = {"clients": {"A": {"train": ["e"] * 16}, "B": {"train": ["e"] * 5}}}
    assert _steps(index, TRAINING) == "A 16 (76%) in 4, B 5 (24%) in 2"


def test_idle_rounds_cost_nothing_and_distil_nothing() -> None:
    """A sends 2 MB and is sent 2 MB in round 1, and idles in round 2: two messages, which as whole models are 20 MB."""
    rows = [
        round_of(1, "A", 3.0, bytes_up=2_000_000, bytes_down=2_000_000, share_distilled=0.5, teacher_entropy=1.0),
        round_of(2, "A", 3.0),
    ]
    bars = traffic.draw({"run": rows}, 10_000_000, 1).axes[0].patches
    assert [bar.get_width() for bar in bars] == [4.0, 20.0]
    (line,) = share_distilled.draw(rows, ["A"], 5.0).axes[0].lines
    assert line.get_xydata().tolist() == [[1.0, 50.0]]


def test_bytes_count_until_the_last_clients_best_round() -> None:
    """Two clients send 1 MB each in each of three rounds; their best rounds are 1 and 2: 4 MB."""
    rows = [
        round_of(number, client, 3.0, bytes_up=1_000_000, best=number == best)
        for client, best in (("A", 1), ("B", 2))
        for number in (1, 2, 3)
    ]
    assert sending._sent_until_best(rows) == pytest.approx(4.0)


def test_nothing_trained_is_nothing_drawn() -> None:
    """The untrained backbone alone has no history."""
    assert not learning_curves.draw({}, ["A"], {}).axes[0].lines
    assert not traffic.draw({}, 1, 1).axes[0].patches


@pytest.mark.parametrize(
    ("limits", "dark"), [((0.0, 1.0), [False, False, False, True]), (None, [False, False, True, True])]
)
def test_dark_cells_have_light_numbers(limits: tuple[float, float] | None, dark: list[bool]) -> None:
    """Over 0 to 1 only 1.0 is dark; over each column's own range the larger of its two numbers is."""
    table = {"a": {"x": 0.0, "y": 0.1}, "b": {"x": 0.3, "y": 1.0}}
    (axis,) = heatmap.draw({"t": table}, "", "", limits=limits).axes
    assert [(text.get_text(), text.get_color() == "white") for text in axis.texts] == [
        *zip(("0.000", "0.100", "0.300", "1.000"), dark, strict=True)
    ]


def test_a_run_without_summaries_has_a_loss_and_no_rouge() -> None:
    def figures(*metrics: str) -> dict[str, dict[str, float]]:
        return {"mean": {f"{m}{end}": 1.0 for m in metrics for end in ("", "_low", "_high")}}

    def rows(*runs: dict[str, dict[str, float]]) -> dict[str, list[str]]:
        named = {f"r{number}": run for number, run in enumerate(runs)}
        axes = comparison.draw(named, [], {name: name for name in named}, dict.fromkeys(named, "#000000")).axes
        return {axis.get_ylabel()[:9]: [label.get_text() for label in axis.get_yticklabels()] for axis in axes}

    full, loss = figures("average", "loss"), figures("loss")
    assert rows(full, loss, full) == {"average R": ["r0", "r2"], "test loss": ["r0", "r1", "r2"]}
    assert rows(full, loss) == {"test loss": ["r0", "r1"]}, "one ROUGE alone is no comparison"
    assert rows(full) == {"average R": ["r0"], "test loss": ["r0"]}


def test_seeds_are_points_and_their_mean_is_over_the_clients_that_all_have() -> None:
    """One run has B besides: the mean is A's alone. Two seeds, two points a panel."""

    def run(**clients: float) -> dict[str, dict[str, float]]:
        return {
            name: {f"{metric}{end}": value for metric in ("average", "loss") for end in ("", "_low", "_high")}
            for name, value in clients.items()
        }

    shown = {"x": run(A=2.0, B=9.0, mean=2.0), "y": run(A=2.0, mean=2.0)}
    seeds = [{"x": run(A=a, B=9.0, mean=5.0), "y": run(A=a, mean=a)} for a in (1.0, 3.0)]
    of_mean = comparison.draw(shown, seeds, {"x": "x", "y": "y"}, {"x": "k", "y": "k"}).axes[2]
    points = [line.get_xdata() for line in of_mean.lines if line.get_markersize() == 3]
    assert [list(map(float, own)) for own in points] == [[1.0, 3.0], [1.0, 3.0]]


def test_runs_without_a_common_client_have_means_of_their_own() -> None:
    assert common_clients({"x": {"A": 1, "mean": 1}, "y": {"B": 1, "mean": 1}}) == (["A", "B"], ["A", "B"])
    assert common_clients({"x": {"A": 1, "B": 1, "mean": 1}, "y": {"B": 1, "mean": 1}}) == (["B"], ["A", "B"])


def test_a_method_has_one_colour() -> None:
    own = run_of("fedavg")[0].model_copy(update={"kind": "AdaFedAvg"})
    found = colours([*run_of("a"), own, *run_of("b")])
    assert found["a"] == found["b"] != found["fedavg"]


def test_adapters_of_the_first_round_are_counted() -> None:
    """Of the clients of the run that distils A is best in round 1 and B in round 2; the other run distils nothing."""
    distils = [round_of(1, "A", 1, best=True, share_distilled=0.9), round_of(2, "B", 1, best=True, share_distilled=0.9)]
    plain = [round_of(1, "A", 1, best=True)]
    rows = {name: run_of(name) for name in ("kd", "avg")}
    trainings = {"more/kd-1": "K", "more/avg-1": "A"}
    (line,) = _first_rounds(results_of(rows=rows, histories={"kd": distils, "avg": plain}), trainings)
    assert line.startswith("1 of the 2 adapters")
    assert _first_rounds(results_of(rows={"avg": rows["avg"]}, histories={"avg": plain}), trainings) == []


def test_a_run_under_two_names_counts_once_and_a_servers_adapter_not_at_all() -> None:
    distils = [round_of(1, "A", 1, best=True, share_distilled=0.9)]
    rows = {name: run_of(name) for name in ("kd", "kd-again", "kd-iid", "server")}
    rows["server"] = [rows["server"][0].model_copy(update={"evaluate": "server"})]
    trainings = {"more/kd-1": "K", "more/kd-again-1": "K", "more/kd-iid-1": "I", "more/server-1": "S"}
    (line,) = _first_rounds(results_of(rows=rows, histories=dict.fromkeys(rows, distils)), trainings)
    assert line.startswith("2 of the 2 adapters"), "of kd, and of the same knobs on other data"


def test_client_rounds_are_those_in_which_a_client_trained() -> None:
    """Two clients, two rounds, and B idle in the second: three."""
    history = [
        round_of(1, "A", 1, steps=2),
        round_of(1, "B", 1, steps=1),
        round_of(2, "A", 1, steps=2),
        round_of(2, "B", 1, steps=0),
    ]
    results = results_of(rows={"run": run_of("run")}, histories={"run": history})
    assert "Client-rounds: run 3." in extras.client_rounds_told(results, ["run", "gone"])[0]
    again = [replace(one, seed=2) for one in history[:2]]
    assert client_rounds(history + again) == {1: 3, 2: 2}


def test_the_last_rounds_loss_is_over_the_clients_of_the_best_one() -> None:
    """SAMSum is easier: with it the last round would look better than it is, (3 + 2.5 + 1) / 3."""
    figures = {"A": {"last_loss": 3.0}, "B": {"last_loss": 2.5}, "SAMSum": {"last_loss": 1.0}, "mean": {"loss": 2.0}}
    assert _ending(figures, ["A", "B"]) == "last round: 2.750"
    assert _ending(figures | {"A": {}}, ["A", "B"]) == ""


def test_the_teacher_stands_beside_the_student_where_there_is_one(tmp_path: Path) -> None:
    rows = [round_of(n, "A", 3.0 - n, teacher_validation_loss=loss) for n, loss in ((1, 4.0), (2, 3.5))]
    made = {"kd": run_of("kd", local_start="own"), "avg": run_of("avg")}
    results = results_of(rows=made, histories={"kd": rows, "avg": [round_of(1, "A", 1)]})
    (piece,) = teachers.teacher_and_student(Canvas(tmp_path), results, "kd")
    assert "Run: kd." in piece
    assert "that the teacher met is the one of the round before" in piece
    assert (tmp_path / "teacher_kd.svg").is_file()
    assert teachers.teacher_and_student(Canvas(tmp_path), results, "avg") == []


def test_a_student_that_starts_from_the_server_met_a_teacher_that_it_was(tmp_path: Path) -> None:
    rows = [round_of(1, "A", 2.0, teacher_validation_loss=4.0)]
    results = results_of(rows={"kd": run_of("kd", local_start="server")}, histories={"kd": rows})
    assert "the teacher met" not in teachers.teacher_and_student(Canvas(tmp_path), results, "kd")[0]


def test_parts_of_speech_say_how_often_they_are_distilled() -> None:
    shares = [{"client": "A", "share": "distilled", "value": "0.86", "low": "0.8", "high": "0.9"}]
    pos = [{"client": "A", "pos": "NOUN", "distilled_given_pos": "0.756", "lift": "0.858"}]
    told, parts, _ = extras.words_distilled(shares, pos)
    assert "A 86.0% (80.0 … 90.0)." in told
    assert "<td>NOUN</td><td>76% (0.86)</td>" in parts
    assert extras.words_distilled([], []) == []


def test_the_untrained_backbone_is_shown_a_client() -> None:
    metrics: Any = {"zeroshot": {"A": {"average": 12.4}, "B": {"average": 17.2}, "mean": {"average": 14.8}}}
    assert "A 12.40, B 17.20.</p>" in extras.untrained(metrics, "zeroshot")[0]
    assert extras.untrained(metrics, "gone") == []


def test_the_deciles_threshold_is_the_runs_own(tmp_path: Path) -> None:
    groups = [{"entropy": float(n), "teacher_better": 0.5, "gain": 0.0} for n in range(10)]
    results = results_of(rows={"fedselectkd": run_of("fedselectkd", tau=3.0)})
    found = {"deciles": {"fedselectkd-1": {"A": groups}}}
    (piece,) = teachers.teacher_deciles(Canvas(tmp_path), results, found)
    assert "the dashed line is τ = 3 nats" in piece


def test_ratings_are_drawn_and_their_numbers_stand_below(tmp_path: Path) -> None:
    """Of ten examples, one a meeting, seven are won, one is tied and two are lost."""
    outcomes = ["win"] * 7 + ["tie"] + ["loss"] * 2
    rows = [
        {
            "rater": "r",
            "item": f"i{n}",
            "criterion": "c",
            "client": "A",
            "meeting": f"m{n}",
            "example": f"e{n}",
            "against": "AdaFedAvg",
            "outcome": outcome,
        }
        for n, outcome in enumerate(outcomes)
    ]
    figure, table = raters.ratings(Canvas(tmp_path), rows, "AdaFedSelectKD", 200)
    assert "in the eyes of one rater" in figure
    assert (tmp_path / "human.svg").is_file()
    assert "<td>AdaFedAvg</td><td>70 (" in table
    assert "<td>10 (" in table
    (nobody,) = raters.ratings(Canvas(tmp_path), [], "AdaFedSelectKD", 200)
    assert "Nobody has rated summaries yet" in nobody
