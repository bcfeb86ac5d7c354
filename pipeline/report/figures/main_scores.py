"""The main table as a picture: every run's mean over clients with its 95% interval; several seeds as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.evaluation.scores import MEAN
from pipeline.report.figures.style import interval_row
from pipeline.runs.results import Metrics

PANELS = (("average", "ROUGE, mean of R-1, R-2, R-L"), ("loss", "test loss, nats a token (less is better)"))


def draw(metrics: Metrics, by_seed: Sequence[Metrics], labels: Mapping[str, str], colours: Mapping[str, str]) -> Figure:
    """`metrics`: run -> client -> figures, as in reports/metrics.json; `by_seed`: the same of each seed alone."""
    runs = list(metrics)
    figure = Figure(figsize=(7.2, 0.9 + 0.34 * len(runs)))
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (metric, title) in zip(axes, PANELS, strict=True):
        for row, run in enumerate(runs):
            mean = metrics[run][MEAN]
            ends = mean[f"{metric}_low"], mean[f"{metric}_high"]
            points = [one[run][MEAN][metric] for one in by_seed]
            interval_row(axis, row, ends, mean[metric], points, colours[run])
        axis.set_xlabel(title)
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(runs)), [labels[run] for run in runs])
    axes[0].invert_yaxis()
    figure.tight_layout()
    return figure
