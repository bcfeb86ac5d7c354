"""What figures show: points, bars and cells, from numbers worked by hand."""

from pathlib import Path

import pytest
from made_results import AVERAGE, figures, results_of, round_of
from workspaces import files_of

from pipeline.evaluation.comparisons import Comparison, Effect
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures
from pipeline.report.figures import bars, curves, intervals, matrices
from pipeline.report.figures.style import Look, save
from pipeline.tasks.task import LOSS

BOTH, LOSS_ALONE = figures(average=1.0, loss=1.0), figures(loss=1.0)
BLACK = {name: Look(name, "#000000") for name in "xyz"}


def test_bytes_add_up_over_rounds_and_are_a_mean_over_seeds() -> None:
    """Two clients send 1 MB up and 2 MB down a round: 6 MB, then 12; a second seed with the same traffic adds none."""
    sent = {"bytes_up": 1_000_000, "bytes_down": 2_000_000}
    rows = [round_of(n, client, 4.0 - n, seed, **sent) for seed in (1, 2) for n in (1, 2) for client in "AB"]
    assert curves.path_of(rows) == [(6.0, 3.0), (12.0, 2.0)]
    assert curves.path_of(rows, 10.0) == [(60.0, 3.0), (120.0, 2.0)]


def test_an_idle_round_costs_nothing_and_a_run_that_sends_nothing_has_no_bar() -> None:
    """A sends 2 MB and is sent 2 MB in round 1."""
    idle = round_of(2, "A", 3.0)
    run = [round_of(1, "A", 3.0, bytes_up=2_000_000, bytes_down=2_000_000), idle]
    (bar,) = bars.draw_totals({"alone": [idle], "run": run}, 1).axes[0].patches
    assert bar.get_width() == 4.0
    assert not bars.draw_totals({}, 1).axes[0].patches


def test_a_forest_plot_has_a_row_an_effect_and_the_papers_as_a_dashed_line() -> None:
    """The metric that no effect has gets no panel; a comparison that was not run gets no row. * is not corrected."""
    one = Comparison(name="c", statement="", terms={"a": 1, "b": -1}, effects={"average": 2.0})
    effects = [Effect(one, "average", Interval(1.0, 0.5, 1.5), by_seed={1: 0.9, 2: 1.1}), Effect(one, "loss")]
    (axis,) = intervals.draw_forest(effects, {"average": AVERAGE, "loss": LOSS}).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a − b *"]
    assert [list(line.get_xdata()) for line in axis.lines if line.get_linestyle() == "--"] == [[2.0, 2.0]]
    assert [0.9, 1.1] in [list(line.get_xdata()) for line in axis.lines]


@pytest.mark.parametrize(("limits", "dark"), [((0.0, 1.0), ["1.000"]), (None, ["0.300", "1.000"])])
def test_dark_cells_have_light_numbers(limits: tuple[float, float] | None, dark: list[str]) -> None:
    """Over 0 to 1 only 1.0 is dark; over each column's own range the larger of its two numbers is."""
    table = {"a": {"x": 0.0, "y": 0.1}, "b": {"x": 0.3, "y": 1.0}}
    texts = matrices.draw_cells({"t": table}, "", "", limits=limits).axes[0].texts
    assert [text.get_text() for text in texts] == ["0.000", "0.100", "0.300", "1.000"]
    assert [text.get_text() for text in texts if text.get_color() == "white"] == dark


def test_parts_of_speech_stand_beside_their_base_rate() -> None:
    row = {"client": "A", "pos": "NOUN", "base_rate": "0.3"}
    row |= {"pos_given_distilled": "0.4", "pos_given_not_distilled": "0.1"}
    panels = bars.draw_parts_of_speech([row, row | {"pos": "all"}, row | {"client": "B"}], "A").axes
    assert [[bar.get_height() for bar in panel.patches] for panel in panels] == [[40.0], [10.0]]
    assert [panel.lines[0].get_ydata() for panel in panels] == [[30.0], [30.0]]


def shown(**runs: Figures) -> dict[str, list[str]]:
    """Metric -> the runs in its rows."""
    metrics = {name: {"mean": own} for name, own in runs.items()}
    axes = intervals.draw_clients(metrics, [], BLACK, (AVERAGE, LOSS)).axes
    return {axis.get_ylabel()[:9]: [label.get_text() for label in axis.get_yticklabels()] for axis in axes}


def test_a_run_without_summaries_has_no_rouge_and_one_rouge_alone_is_no_comparison() -> None:
    assert shown(x=BOTH, y=LOSS_ALONE, z=BOTH) == {"average R": ["x", "z"], "test loss": ["x", "y", "z"]}
    assert shown(x=BOTH, y=LOSS_ALONE) == {"test loss": ["x", "y"]}
    assert shown(x=BOTH) == {"average R": ["x"], "test loss": ["x"]}, "unless it is all that there is"


def clients(**values: float) -> dict[str, Figures]:
    return {name: figures(average=value, loss=value) for name, value in values.items()}


def test_seeds_are_points_and_their_mean_is_over_the_clients_that_all_have() -> None:
    """One run has B too: the mean is A's alone. Two seeds, two points a panel."""
    metrics = {"x": clients(A=2.0, B=9.0, mean=2.0), "y": clients(A=2.0, mean=2.0)}
    seeds = [results_of(metrics={"x": clients(A=a, B=9.0, mean=5.0), "y": clients(A=a, mean=a)}) for a in (1.0, 3.0)]
    of_mean = intervals.draw_clients(metrics, seeds, BLACK, (AVERAGE, LOSS)).axes[2]
    assert [[*line.get_xdata()] for line in of_mean.lines if line.get_markersize() == 3] == [[1.0, 3.0], [1.0, 3.0]]


def test_a_sweep_has_no_panel_for_what_one_point_alone_has() -> None:
    """Two values of a knob; one run alone wrote summaries."""
    one = Interval(2.0, 1.5, 2.5)
    tried = {"loss": [(2.0, one), (3.0, one)], "validation": [(2.0, one), (3.0, one)], "score": [(2.0, one)]}
    first, _ = intervals.draw_sweep(tried, "τ", 3.0).axes
    assert [label.get_text() for label in first.get_xticklabels()] == ["2", "3"]
    assert list(first.lines[0].get_xdata()) == [3.0, 3.0], "the value used elsewhere"


def test_one_figure_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        save(matrices.draw_cells({"t": {"a": {"x": 0.0}}}, "", ""), tmp_path / folder, "figure")
    found = files_of(tmp_path / "a")
    assert (set(found), files_of(tmp_path / "b")) == ({"figure.png", "figure.svg"}, found)
