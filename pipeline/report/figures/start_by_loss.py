"""The whole design in one figure: where a client starts a round, by what it learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

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


def draw(results: Results, cells: Mapping[Cell, str], metric: Metric) -> Figure:
    """Two panels of validation loss by round, a line a loss; one of the metric, a row a cell."""
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    *curves, scores = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for axis, start in zip(curves, STARTS, strict=True):
        for index, loss in enumerate(LOSSES):
            if run := cells.get((start, loss)):
                points = mean_by_round(results.histories[run], lambda one: one.validation_loss)
                axis.plot(*transposed(points), color=COLOURS[loss], marker=marker(index), label=loss)
        axis.set_title(f"start: {start}")
        axis.set_xlabel("round")
        axis.xaxis.get_major_locator().set_params(integer=True)
    curves[0].set_ylabel("validation loss, nats a token")
    curves[1].sharey(curves[0])
    shown = [(cell, run) for cell, run in sorted(cells.items()) if metric.name in results.metrics[run][MEAN].metrics]
    for place, ((_, loss), run) in enumerate(shown):
        interval_row(scores, place, results.metrics[run][MEAN].metrics[metric.name], [], COLOURS[loss])
    scores.set_yticks(range(len(shown)), [f"{start}, {loss}" for (start, loss), _ in shown])
    scores.invert_yaxis()
    scores.set_xlabel(f"test, {metric.title}")
    handles, labels = max((axis.get_legend_handles_labels() for axis in curves), key=lambda found: len(found[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=len(LOSSES))
    return figure
