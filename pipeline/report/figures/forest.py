"""Effects with their intervals, a row a comparison and a panel a metric: a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.evaluation.comparisons import Comparison, Effect
from pipeline.report.figures.style import colour, interval_row
from pipeline.tasks.task import Metric


def draw(effects: Sequence[Effect], metrics: Mapping[str, Metric]) -> Figure:
    """Each effect with its 95% interval, each seed's effect as a ring, the paper's effect as a dashed line.

    A comparison that is not corrected has an asterisk.

    Args:
        metrics: name -> metric; a metric that no effect has gets no panel.
    """
    known = [one for one in effects if one.interval is not None and one.metric in metrics]
    labels = {one.comparison.name: label(one.comparison) for one in known}
    names = list(labels)
    panels = [name for name in metrics if any(one.metric == name for one in known)]
    figure = Figure(figsize=(3.2 + 3.2 * len(panels), 0.9 + 0.34 * len(names)))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
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
    figure.tight_layout()
    return figure


def label(comparison: Comparison) -> str:
    """A comparison's contrast, with an asterisk where its p is not corrected by Holm: it has no family."""
    return terms_text(comparison.terms) + ("" if comparison.family else " *")


def terms_text(terms: Mapping[str, float]) -> str:
    """A contrast in words of a formula.

    >>> terms_text({"fedselectkd": 1, "fedavg": -1}), terms_text({"a": 2, "b": -1, "c": -1})
    ('fedselectkd − fedavg', '2 a − b − c')
    """
    parts = []
    for run, weight in terms.items():
        size = "" if abs(weight) == 1 else f"{abs(weight):g} "
        parts.append(f"{'−' if weight < 0 else '+'} {size}{run}")
    return " ".join(parts).removeprefix("+ ")
