"""A knob against what it does: validation loss, which may choose its value, and test scores, for information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from pipeline.figures.style import colour


@dataclass(frozen=True)
class Point:
    """One value of the knob: the best rounds' mean validation loss; test loss and average ROUGE, each with interval."""

    value: float
    label: str
    validation: float
    loss: tuple[float, float, float]
    average: tuple[float, float, float] | None


def draw(points: Sequence[Point], knob: str, chosen: float) -> Figure:
    """`chosen`: the value that all other experiments use, marked by a dashed line."""
    panels = ["validation loss, nats a token", "test loss, nats a token", "average ROUGE on the test set"]
    scored = [point for point in points if point.average is not None]
    shown = panels if len(scored) > 1 else panels[:2]
    figure = Figure(figsize=(3.4 * len(shown), 2.8))
    for number, (axis, title) in enumerate(zip(figure.subplots(1, len(shown)), shown, strict=True)):
        axis.axvline(chosen, color="#999999", linestyle="--", linewidth=1)
        if number == 0:
            axis.plot([p.value for p in points], [p.validation for p in points], marker="o", color=colour(7))
        else:
            own = points if number == 1 else scored
            triples = [p.loss if number == 1 else p.average or p.loss for p in own]
            low = [value - low for value, low, _ in triples]
            high = [high - value for value, _, high in triples]
            axis.errorbar(
                [p.value for p in own],
                [t[0] for t in triples],
                yerr=[low, high],
                marker="o",
                color=colour(6),
                capsize=3,
            )
        axis.set_xticks([p.value for p in points], [p.label for p in points])
        axis.set_xlabel(knob)
        axis.set_title(title, fontsize=9)
    figure.tight_layout()
    return figure
