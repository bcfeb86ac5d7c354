"""Values with 95% intervals: effects, scores of runs by client, and a knob against what it does."""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import MEAN, Figures
from pipeline.report.effects import label
from pipeline.report.figures.style import Look, colour, interval_row, side_by_side
from pipeline.runs.results import Metrics, Results, common_clients
from pipeline.tasks.task import Metric


def draw_forest(effects: Sequence[Effect], metrics: Mapping[str, Metric]) -> Figure:
    """Each effect with its 95% interval, each seed's effect as a ring, the paper's effect as a dashed line.

    A row a comparison and a panel a metric. A comparison that is not corrected has an asterisk.

    `metrics`: name -> metric; a metric that no effect has gets no panel.
    """
    known = [one for one in effects if one.interval is not None and one.metric in metrics]
    labels = {one.comparison.name: label(one.comparison) for one in known}
    names = list(labels)
    panels = [name for name in metrics if any(one.metric == name for one in known)]
    figure, axes = side_by_side(len(panels), 3.2 + 3.2 * len(panels), 0.9 + 0.34 * len(names), sharey=True)
    for axis, name in zip(axes, panels, strict=True):
        axis.axvline(0.0, color="#888888", linewidth=1)
        for effect in (one for one in known if one.metric == name):
            row = names.index(effect.comparison.name)
            assert effect.interval is not None
            interval_row(axis, row, effect.interval, list(effect.by_seed.values()), colour(7))
            if effect.paper is not None:
                axis.plot([effect.paper] * 2, [row - 0.4, row + 0.4], color=colour(6), linestyle="--", linewidth=1.4)
        axis.set_xlabel(f"{metrics[name].title}, {metrics[name].unit} (right: first is better)")
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(names)), list(labels.values()))
    axes[0].invert_yaxis()
    return figure


def draw_clients(
    metrics: Metrics, by_seed: Collection[Results], looks: Mapping[str, Look], endpoints: Sequence[Metric]
) -> Figure:
    """A panel a client and one for the mean, an endpoint a row; one that only one of several runs has is left out.

    `metrics`: run -> client -> figures, of the runs shown, in their order. `by_seed`: of each seed alone, which are
    shown as points.
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
                if own is not None and metric in own.metrics:
                    seeds = [one.metrics[run] for one in by_seed if run in one.metrics]
                    points = [_of_seed(one, client, metric, common) for one in seeds]
                    interval_row(axis, row, own.metrics[metric], points, looks[run].colour)
            axis.set_title(mean if client == MEAN else client)
            axis.grid(axis="y", visible=False)
        less = "\n(less is better)" if endpoint.sign < 0 else ""
        panels[0].set_ylabel(f"{endpoint.title}, {endpoint.unit}{less}")
        panels[0].set_yticks(range(len(runs)), [looks[run].label for run in runs])
        panels[0].set_ylim(len(runs) - 0.5, -0.5)
    return figure


def _of_seed(figures: Mapping[str, Figures], client: str, metric: str, common: Sequence[str]) -> float:
    """One run at one seed; its mean is over the common clients that it has."""
    averaged = [c for c in common if c in figures] if client == MEAN else [client]
    return fmean(figures[one].metrics[metric].value for one in averaged)


def draw_sweep(panels: Mapping[str, Sequence[tuple[float, Interval]]], knob: str, chosen: float) -> Figure:
    """A knob against each of several figures; one that has fewer than two values gets no panel.

    `panels`: title -> (value of the knob, figure); one without intervals has points. `chosen`: the value that all other
    experiments use, marked by a dashed line.
    """
    values = sorted({value for own in panels.values() for value, _ in own})
    shown = {title: own for title, own in panels.items() if len(own) > 1}
    figure, axes = side_by_side(len(shown), 3.4 * len(shown), 2.8)
    for axis, (title, own) in zip(axes, shown.items(), strict=True):
        axis.axvline(chosen, color="#999999", linestyle="--", linewidth=1)
        found = [one.value for _, one in own]
        ends = [[one.value - one.low for _, one in own], [one.high - one.value for _, one in own]]
        tested = any(map(any, ends))  # validation losses have no interval
        style = {"marker": "o", "color": colour(6 if tested else 7), "capsize": 3 if tested else 0}
        axis.errorbar([x for x, _ in own], found, yerr=ends, **style)
        axis.set_xticks(values, [f"{value:.3g}" for value in values])
        axis.set_xlabel(knob)
        # Losses differ in the third digit, of which matplotlib would print the rest once, above the axis.
        axis.ticklabel_format(axis="y", useOffset=False)
        axis.set_title(title, fontsize=9)
    return figure
