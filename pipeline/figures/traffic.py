"""Bytes sent in a whole training, against exchanging the full model as often."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from pipeline.figures.style import colour

MEGABYTE = 1e6


def draw(sent: Mapping[str, float], full_model: Mapping[str, float]) -> Figure:
    """Run -> bytes up and down over all clients and rounds; and the same number of exchanges of the full model."""
    runs = list(sent)
    figure = Figure(figsize=(7.2, 0.75 + 0.55 * len(runs)))
    axis = figure.subplots()
    for offset, values, index, label in ((-0.18, sent, 7, "adapters"), (0.18, full_model, 0, "full model")):
        megabytes = [values[run] / MEGABYTE for run in runs]
        bars = axis.barh([i + offset for i in range(len(runs))], megabytes, 0.34, color=colour(index), label=label)
        axis.bar_label(bars, [f"{m:,.0f} MB" for m in megabytes], padding=3, fontsize=8, color="#333333")
    axis.set_yticks(range(len(runs)), runs)
    axis.invert_yaxis()
    axis.set_xlabel("MB sent, up and down, all clients and rounds")
    axis.margins(x=0.15)
    axis.grid(axis="y", visible=False)
    axis.legend(loc="lower right")
    figure.tight_layout()
    return figure
