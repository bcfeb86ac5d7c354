"""Pieces of the page on the paper, from numbers worked by hand."""

from typing import Any

import pytest
from made_results import AVERAGE, figures, results_of, round_of, row_of, run_of, table_rows

from pipeline.errors import QuorumError
from pipeline.federated.history import Round
from pipeline.plan.orders import RunRow
from pipeline.report import pieces
from pipeline.report.figures.style import Look
from pipeline.report.page import COMMAND, place
from pipeline.workspace import layout


@pytest.mark.usefixtures("short")
def test_a_figure_is_saved_twice_and_embedded_with_its_caption() -> None:
    """A second one of that name is that of a user's section."""
    (drawn,) = pieces.crossed_losses({"one": {"a": {"x": 0.0}}, "two": {"a": {"x": 1.0}}})
    placed = place(drawn)
    assert {path.name for path in layout.FIGURES.iterdir()} == {"crossed.png", "crossed.svg"}
    assert placed.count("<img ") == placed.count("<figcaption>") == 1
    assert f"Runs: one, two. To draw it again: {COMMAND}." in placed
    with pytest.raises(QuorumError, match=r"params.yaml: sections.crossed: is the name of a figure"):
        place(drawn)


def test_words_are_shown_by_client_and_by_part_of_speech() -> None:
    names = ("share", "client", "value", "low", "high")
    rows = [("distilled", "Academic", "0.861", "0.8", "0.9"), ("all_subwords", "Academic", "0.7")]
    rows += [("content_given_distilled", "Academic", "0.5", "0.4", "0.6"), ("fraction", "Academic", "0.75")]
    rows += [("fraction", "Clinic", "1")]
    shares = [dict.fromkeys(names, "") | dict(zip(names, row, strict=False)) for row in rows]
    noun = {"client": "A", "pos": "NOUN", "distilled_given_pos": "0.756", "lift": "0.858"}
    verb = {"client": "A", "pos": "VERB", "distilled_given_pos": "0.5", "lift": "1.1"}
    by_client, by_part, _ = pieces.words(shares, [noun, noun | {"client": "B"}, verb])
    assert table_rows(by_client)[1:] == [
        ["Academic", "86.1% (80.0 … 90.0)", "70.0%", "75.0%", "86%", "50.0% (40.0 … 60.0)"],
        ["Clinic", "–", "–", "100.0%", "–", "–"],
    ]
    assert table_rows(by_part)[0][1:] == ["A", "B"]
    assert table_rows(by_part)[1:] == [["NOUN", "76% (0.86)", "76% (0.86)"], ["VERB", "50% (1.10)", "–"]]
    assert pieces.words([], []) == []


def test_deciles_are_drawn_at_their_entropy_with_the_runs_own_threshold() -> None:
    """A run without a result has none."""
    groups = [{"entropy": float(n), "teacher_better": n / 10, "gain": -float(n)} for n in range(3)]
    results = results_of(rows={"fedselectkd": run_of("fedselectkd", tau=3.0)})
    (drawn,) = pieces.teacher_deciles(results, {"fedselectkd-1": {"A": groups}, "gone-1": {"A": groups}})
    assert (drawn.name, drawn.about) == ("deciles_fedselectkd-1", {"run": "fedselectkd-1", "tau": "3"})
    left, right = (axis.lines for axis in drawn.figure.axes)
    assert left[0].get_xydata().tolist() == [[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]]
    assert right[0].get_xydata().tolist() == [[0.0, 0.0], [1.0, -1.0], [2.0, -2.0]]
    assert [list(lines[-1].get_xdata()) for lines in (left, right)] == [[3.0, 3.0]] * 2


def test_the_losses_of_student_and_teacher_are_in_one_figure() -> None:
    """The teacher as it was sent: 4.0 and 3.5, after rounds in which the student came to 2.0 and 1.0."""
    rows = [round_of(n, "A", 3.0 - n, sent_validation_loss=loss) for n, loss in ((1, 4.0), (2, 3.5))]
    results = results_of(rows={"kd": run_of("kd")}, histories={"kd": rows, "avg": [round_of(1, "A", 1)]})
    (drawn,) = pieces.teacher_and_student(results, "kd")
    lines = {line.get_label(): line.get_ydata().tolist() for line in drawn.figure.axes[0].lines}
    assert lines == {"student": [2.0, 1.0], "teacher": [4.0, 3.5]}
    assert pieces.teacher_and_student(results, "avg") == [], "a run without a teacher"


def test_client_rounds_are_those_in_which_a_client_trained() -> None:
    """Two clients, two rounds, and B idle in the second: three; at another seed two: 2.5 on average."""
    rows = [round_of(n, client, 1, steps=steps) for n, client, steps in ((1, "A", 2), (1, "B", 1), (2, "A", 2))]
    rows.append(round_of(2, "B", 1, steps=0))
    again = [round_of(1, client, 1, 2, steps=2) for client in "AB"]
    results = results_of(histories={"run": rows, "seeds": rows + again, "untrained": []})
    (piece,) = pieces.rounds_of_clients(results, ["run", "seeds", "untrained", "gone"])
    assert "run 3, seeds 2.5." in piece
    assert pieces.rounds_of_clients(results, ["gone"]) == []


@pytest.mark.parametrize(
    ("by_rater", "cells"),
    [
        ({"r": "w" * 7 + "tll"}, ["70", "10", "20", "10", "–", "0"]),
        ({"r": "wwll", "s": "wwlw"}, ["62", "0", "38", "8", "0.47", "4"]),
    ],
)
def test_ratings_are_drawn_and_are_in_a_table_with_their_agreement(by_rater: dict[str, str], cells: list[str]) -> None:
    """Two raters agree on three of four pairs; five of eight are wins: κ = (3/4 − 34/64) / (1 − 34/64) = 0.47."""
    full, common = {"w": "win", "t": "tie", "l": "loss"}, {"criterion": "c", "client": "A", "against": "AdaFedAvg"}
    rated = [(rater, full[one], str(n)) for rater, own in by_rater.items() for n, one in enumerate(own)]
    rows = [common | {"rater": r, "outcome": o} | dict.fromkeys(("item", "meeting", "example"), n) for r, o, n in rated]
    drawn, table = pieces.ratings(rows, "AdaFedSelectKD", 200)
    assert [[cell.partition(" (")[0] for cell in row[1:]] for row in table_rows(table)][1:] == [cells]
    widths = [bar.get_width() for bar in drawn.figure.axes[0].patches]
    assert widths == pytest.approx([float(one) for one in cells[:3]], abs=0.5)
    assert drawn.about == {"raters": len(by_rater), "methods": ["AdaFedSelectKD", "AdaFedAvg"]}


def swept(best_loss: dict[str, float], **changed: list[RunRow]) -> list[dict[str, Any]]:
    """What captions say of runs tau-2, … whose best round has this validation loss, and of one that is not made."""
    rows = {f"tau-{tau}": run_of(f"tau-{tau}", tau=float(tau)) for tau in best_loss} | changed
    metrics = {run: {"mean": figures(spread=0.5, loss=2.0, average=2.0)} for run in rows}
    histories = {f"tau-{tau}": [round_of(1, "A", loss, best=True)] for tau, loss in best_loss.items()}
    results = results_of(rows=rows, metrics=metrics, histories=histories)
    return [one.about for one in pieces.knob_sweep(results, [*rows, "gone"], "tau", "τ", "tau-3", AVERAGE)]


def test_a_sweep_names_the_value_with_the_least_validation_loss() -> None:
    (about,) = swept({"2": 3.0, "3": 2.8, "4": 2.5})
    assert about == {"knob": "τ", "best": "4", "marked": True, "runs": ["tau-2", "tau-3", "tau-4"]}


def test_one_value_is_no_sweep() -> None:
    """A run without the knob and the untrained backbone are no second one."""
    assert swept({"2": 3.0}) == []
    for other in (run_of("tau-3", **{"lambda": 0.2}), [row_of("tau-3", training=None)]):
        assert swept({"2": 3.0, "3": 2.5}, **{"tau-3": other}) == []


def tried(run: str, knob: str, chosen: str, *values: str) -> list[dict[str, str]]:
    """Rows of results/tuning.csv."""
    about = {"scale": "laptop", "search": knob, "chooses": f"runs.{run}.{knob}", "run": run, "method": "AdaFedProx"}
    return [about | {"value": value, "chosen": str(int(value == chosen))} for value in values]


MU = tried("prox", "mu", "0.1", "0.01", "0.1", "1")
RATE = [row | {"chooses": "rates.server"} for row in MU]


@pytest.mark.parametrize(
    ("trials", "rows", "text"),
    [
        (MU, run_of("prox", mu=0.10), "prox mu=0.1 of 3 trials"),
        (MU, run_of("prox", mu=2.0), "prox mu=0.1 of 3 trials (the run has another)"),
        (MU, [], "prox mu=0.1 of 3 trials"),
        (tried("prox", "batch_size", "4.0", "2.0", "4.0", "8.0"), run_of("prox"), "prox batch_size=4.0 of 3 trials"),
        ([*MU, *tried("ditto", "mu", "1", "1", "2"), *RATE], [], "prox mu=0.1 of 3 trials"),
        ([*MU, *tried("prox", "eta", "2", "1", "2", "3")], [], "prox mu=0.1 of 3 trials; prox eta=2 of 3 trials"),
    ],
    ids=["as chosen", "another value", "not made", "a common knob", "others'", "two searches"],
)
def test_a_tuned_run_has_its_chosen_trials(trials: list[dict[str, str]], rows: list[RunRow], text: str) -> None:
    (piece,) = pieces.tuned(results_of(rows={"prox": rows} if rows else {}), trials, ["prox", "gone"])
    assert f" {text}.</p>" in piece


def test_bytes_count_until_the_last_clients_best_round() -> None:
    """Two clients send 1 MB each in each of three rounds; their best rounds are 1 and 2: 4 MB. At another seed 2 MB."""
    bests = ("A", 1), ("B", 2)
    rows = [round_of(n, client, 3.0, bytes_up=1_000_000, best=n == best) for client, best in bests for n in (1, 2, 3)]
    again = [round_of(1, "A", 3.0, 2, bytes_up=2_000_000, best=True)]
    assert [pieces.sent_until_best(own) for own in (rows, rows + again)] == pytest.approx([4.0, 3.0])


def losses(*by_round: float) -> list[Round]:
    """One client that sends 1 MB a round; its last round is its best."""
    return [round_of(n, "A", loss, bytes_up=1_000_000, best=n == len(by_round)) for n, loss in enumerate(by_round, 1)]


def test_who_reaches_the_best_loss_of_averaging_with_how_much() -> None:
    """It comes to 2.0 with 2 MB; kd comes there with 1 MB, slow never. A whole model is ten times an adapter."""
    histories = {"avg": losses(3.0, 2.0), "kd": losses(1.9, 1.8), "slow": losses(3.0, 2.5)}
    histories["alone"] = [round_of(1, "A", 1.0, best=True)]
    metrics = {run: {"mean": figures(average=20.0, loss=2.2)} for run in histories}
    metrics["slow"] = {"mean": figures(loss=2.4)}
    results = results_of(histories=histories, metrics=metrics)
    black = {name: Look(name.upper(), "#000000") for name in histories}
    _, table = pieces.bytes_sent(results, [*histories, "gone"], black, 10_000_000)
    assert table_rows(table)[1:] == [
        ["AVG", "2", "20", "2", "2.200", "20.00"],
        ["KD", "1", "10", "2", "2.200", "20.00"],
        ["SLOW", "not reached", "not reached", "2", "2.400", "–"],
    ]
    assert pieces.bytes_sent(results, ["gone", "kd"], {}, 10) == [], "nothing to reach"
