"""What pooling gains over training alone, by how many training examples all clients have together."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from pipeline.evaluation.scores import LOSS, MEAN
from pipeline.report.figures.style import colour, marker
from pipeline.report.sizes import Size
from pipeline.tasks.task import Metric


def draw(sizes: Sequence[Size], metrics: Sequence[Metric]) -> Figure:
    """A panel a metric; a thin line a client, and the mean with its interval."""
    figure = Figure(figsize=(4.4 * len(metrics), 3.2), layout="constrained")
    x = [size.examples for size in sizes]
    for axis, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        axis.axhline(0.0, color="#888888", linewidth=1)
        for index, client in enumerate(sizes[0].held):
            gains = [size.gains[metric.name][client].value for size in sizes]
            axis.plot(x, gains, color=colour(index + 2), marker=marker(index), linewidth=1, alpha=0.8, label=client)
        means = [size.gains[metric.name][MEAN] for size in sizes]
        ends = [[one.value - one.low for one in means], [one.high - one.value for one in means]]
        style = {"color": colour(6), "marker": "D", "capsize": 3, "label": "mean over clients"}
        axis.errorbar(x, [one.value for one in means], yerr=ends, **style)
        axis.set_xscale("log")
        axis.set_xticks(x, [f"{one:.0f}" for one in x])
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("training examples of all clients")
        unit = metric.unit if metric.name == LOSS else metric.title
        axis.set_ylabel(f"gain of pooling, {unit}")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
