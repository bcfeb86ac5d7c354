"""What faults cost: loss against a clock, and scores by defence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.evaluation.intervals import Interval
from pipeline.report.figures.style import colour, marker


def draw_by_time(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """A line a run: (simulated minutes, development loss)."""
    figure = Figure(figsize=(6.2, 3.4))
    axis = figure.subplots()
    for number, (name, points) in enumerate(curves.items()):
        across, up = [minutes for minutes, _ in points], [loss for _, loss in points]
        axis.plot(across, up, label=name, color=colour(number + 1), marker=marker(number), markersize=3, markevery=5)
    axis.set_xlabel("simulated minutes")
    axis.set_ylabel("development loss, nats a text")
    axis.legend(fontsize=7)
    figure.tight_layout()
    return figure


def draw_bars(groups: Mapping[str, Sequence[Interval]], names: Sequence[str]) -> Figure:
    """A group of bars a defence, one a number of poisoned clients: its score with its interval."""
    figure = Figure(figsize=(6.2, 3.2))
    axis = figure.subplots()
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        own = [values[place] for values in groups.values()]
        axis.bar(
            [at + place * width for at in range(len(groups))],
            [one.value for one in own],
            width,
            yerr=[one.half for one in own],
            color=colour(place + 1),
            error_kw={"linewidth": 1},
            label=name,
        )
    axis.set_xticks([at + 0.4 - width / 2 for at in range(len(groups))], list(groups))
    axis.set_ylabel("accuracy, points")
    axis.legend(fontsize=8, title="poisoned clients", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names))
    figure.tight_layout()
    return figure
