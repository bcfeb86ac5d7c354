"""The whole design in one figure: where a client starts a round, by what it learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import MaxNLocator

from pipeline.evaluation.scores import MEAN
from pipeline.federated.history import mean_by_round
from pipeline.plan.orders import RunRow
from pipeline.report.figures.style import colour, interval_row, marker, transposed
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric

STARTS = ("own", "server")
LOSSES = ("cross-entropy", "distil all", "distil what is sure")
_LOSS_OF = {"AdaSingle": LOSSES[0], "AdaFedAvg-local": LOSSES[0], "AdaFedKD": LOSSES[1], "AdaFedSelectKD": LOSSES[2]}
COLOURS = dict(zip(LOSSES, (colour(4), colour(5), colour(6)), strict=True))

Cell = tuple[str, str]
"""(start, loss)."""


def cells_of(rows: Mapping[str, Sequence[RunRow]]) -> dict[Cell, str]:
    """Cell of the design -> the first run that stands for it; controls of teacher or selection stand for none."""
    found: dict[Cell, str] = {}
    for name, own in rows.items():
        row = own[0]
        hyper = row.training.hyperparameters if row.training else {}
        plain = hyper.get("teacher", "server") == "server" and hyper.get("select", "entropy") == "entropy"
        if row.part in _LOSS_OF and plain:
            start = "own" if row.part == "AdaSingle" else hyper.get("local_start", "server")
            found.setdefault((start, _LOSS_OF[row.part]), name)
    return found


Points = Sequence[tuple[int, float]]
"""(round, value)."""


def draw(results: Results, cells: Mapping[Cell, str], metric: Metric, written: Mapping[str, Points]) -> Figure:
    """Panels by start, a line a loss: validation loss by round, below it the metric; beside them tests, a row a cell.

    Args:
        written: run -> the metric of validation summaries by round, mean over clients; empty, and the panels are gone.
    """
    figure = Figure(figsize=(9.6, 5.4 if written else 3.4), layout="constrained")
    grid = figure.add_gridspec(2 if written else 1, 3, width_ratios=(1, 1, 1.1))
    losses = {run: mean_by_round(results.histories[run], lambda one: one.validation_loss) for run in cells.values()}
    curves = [_curves(figure, grid, 0, cells, losses)]
    curves[0][0].set_ylabel("validation loss, nats a token")
    for axis, start in zip(curves[0], STARTS, strict=True):
        axis.set_title(f"start: {start}")
    if written:
        curves.append(_curves(figure, grid, 1, cells, written))
        curves[1][0].set_ylabel(f"validation, {metric.title}")
    for axis in curves[-1]:
        axis.set_xlabel("round")
    scores = figure.add_subplot(grid[:, 2])
    shown = [(cell, run) for cell, run in sorted(cells.items()) if metric.name in results.metrics[run][MEAN].metrics]
    for place, ((_, loss), run) in enumerate(shown):
        interval_row(scores, place, results.metrics[run][MEAN].metrics[metric.name], [], COLOURS[loss])
    scores.set_yticks(range(len(shown)), [f"{start}, {loss}" for (start, loss), _ in shown])
    scores.invert_yaxis()
    scores.set_xlabel(f"test, {metric.title}")
    handles, labels = max((axis.get_legend_handles_labels() for axis in curves[0]), key=lambda found: len(found[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=len(LOSSES))
    return figure


def _curves(
    figure: Figure, grid: GridSpec, row: int, cells: Mapping[Cell, str], points: Mapping[str, Points]
) -> list[Axes]:
    """A row of panels with one scale, a panel a start."""
    axes: list[Axes] = []
    for column, start in enumerate(STARTS):
        axis = figure.add_subplot(grid[row, column], sharey=axes[0] if axes else None)
        for index, loss in enumerate(LOSSES):
            run = cells.get((start, loss), "")
            if run in points:
                axis.plot(*transposed(points[run]), color=COLOURS[loss], marker=marker(index), label=loss)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.append(axis)
    return axes
