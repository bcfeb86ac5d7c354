"""Runs side by side: a panel a client and one for the mean, an endpoint a row, with intervals and seeds as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from pipeline.evaluation.scores import MEAN, Figures
from pipeline.report.figures.style import interval_row
from pipeline.runs.results import Metrics, common_clients
from pipeline.tasks.task import Metric


def draw(
    metrics: Metrics,
    by_seed: Sequence[Metrics],
    labels: Mapping[str, str],
    colours: Mapping[str, str],
    endpoints: Sequence[Metric],
) -> Figure:
    """A figure of metrics by client. An endpoint that only one of several runs has is left out.

    Args:
        metrics: run -> client -> figures, of the runs shown, in their order.
        by_seed: the same of each seed alone, of all runs.
        labels, colours: of each run.
    """
    common, named = common_clients(metrics)
    clients = [*named, MEAN]
    mean = "mean" if common == named else f"mean of {len(common)}"
    having = {one: [run for run in metrics if one.name in metrics[run][MEAN].metrics] for one in endpoints}
    shown = {endpoint: runs for endpoint, runs in having.items() if len(runs) > 1 or len(runs) == len(metrics)}
    heights = [0.9 + 0.3 * len(runs) for runs in shown.values()]
    figure = Figure(figsize=(min(12.0, 1.6 + 2.0 * len(clients)), sum(heights)))
    grid = figure.subplots(len(shown), len(clients), sharey="row", squeeze=False, height_ratios=heights)
    for (endpoint, runs), panels in zip(shown.items(), grid, strict=True):
        metric = endpoint.name
        for axis, client in zip(panels, clients, strict=True):
            for row, run in enumerate(runs):
                own = metrics[run].get(client)
                if own is None or metric not in own.metrics:
                    continue
                points = [_of_seed(one[run], client, metric, common) for one in by_seed if run in one]
                interval_row(axis, row, own.metrics[metric], points, colours[run])
            axis.set_title(mean if client == MEAN else client)
            axis.grid(axis="y", visible=False)
        panels[0].set_ylabel(_title(endpoint, "\n"))
        panels[0].set_yticks(range(len(runs)), [labels[run] for run in runs])
        panels[0].set_ylim(len(runs) - 0.5, -0.5)
    figure.tight_layout()
    return figure


def draw_means(
    metrics: Metrics,
    by_seed: Sequence[Metrics],
    labels: Mapping[str, str],
    colours: Mapping[str, str],
    endpoints: Sequence[Metric],
) -> Figure:
    """Means over clients alone, a panel an endpoint; see `draw`."""
    runs = list(metrics)
    figure = Figure(figsize=(7.2, 0.9 + 0.34 * len(runs)))
    axes = figure.subplots(1, len(endpoints), sharey=True)
    for axis, endpoint in zip(axes, endpoints, strict=True):
        for row, run in enumerate(runs):
            if endpoint.name not in metrics[run][MEAN].metrics:
                continue
            points = [one[run][MEAN].metrics[endpoint.name].value for one in by_seed if run in one]
            interval_row(axis, row, metrics[run][MEAN].metrics[endpoint.name], points, colours[run])
        axis.set_xlabel(_title(endpoint, " "))
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(runs)), [labels[run] for run in runs])
    axes[0].invert_yaxis()
    figure.tight_layout()
    return figure


def _title(metric: Metric, before: str) -> str:
    return f"{metric.title}, {metric.unit}" + (f"{before}(less is better)" if metric.sign < 0 else "")


def _of_seed(figures: Mapping[str, Figures], client: str, metric: str, common: Sequence[str]) -> float:
    """One run at one seed; its mean is over the common clients that it has."""
    averaged = [c for c in common if c in figures] if client == MEAN else [client]
    return fmean(figures[one].metrics[metric].value for one in averaged)
