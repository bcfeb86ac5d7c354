"""A knob against what it does: validation loss, which may choose its value, and test scores, for information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from pipeline.evaluation.intervals import Interval
from pipeline.report.figures.style import colour


@dataclass(frozen=True)
class Point:
    """One value of the knob: the best rounds' mean validation loss (a point), test loss, the score of predictions."""

    value: float
    label: str
    validation: Interval
    loss: Interval
    score: Interval | None


def draw(points: Sequence[Point], knob: str, chosen: float, scored: str) -> Figure:
    """`chosen`: the value that all other experiments use, marked by a dashed line. `scored`: the score's title."""
    panels = {
        "validation loss, nats a token": [(p.value, p.validation) for p in points],
        "test loss, nats a token": [(p.value, p.loss) for p in points],
        f"{scored} on the test set": [(p.value, p.score) for p in points if p.score is not None],
    }
    shown = {title: own for title, own in panels.items() if len(own) > 1}
    figure = Figure(figsize=(3.4 * len(shown), 2.8))
    for axis, (title, own) in zip(figure.subplots(1, len(shown)), shown.items(), strict=True):
        axis.axvline(chosen, color="#999999", linestyle="--", linewidth=1)
        values = [one.value for _, one in own]
        ends = [[one.value - one.low for _, one in own], [one.high - one.value for _, one in own]]
        tested = any(map(any, ends))  # validation losses have no interval
        style = {"marker": "o", "color": colour(6 if tested else 7), "capsize": 3 if tested else 0}
        axis.errorbar([x for x, _ in own], values, yerr=ends, **style)
        axis.set_xticks([p.value for p in points], [p.label for p in points])
        axis.set_xlabel(knob)
        # Losses differ in the third digit, of which matplotlib would print the rest once, above the axis.
        axis.ticklabel_format(axis="y", useOffset=False)
        axis.set_title(title, fontsize=9)
    figure.tight_layout()
    return figure
