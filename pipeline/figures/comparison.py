"""Runs side by side: a panel a client and one for the mean, average ROUGE (or test loss) with its 95% interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from pipeline.evaluation.scores import MEAN
from pipeline.figures.style import colour

TITLES = {"average": "average ROUGE", "loss": "test loss, nats a token (less is better)"}


def draw(
    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]], labels: Mapping[str, str], metric: str = "average"
) -> Figure:
    """`metrics`: run -> client -> figures, of the runs to be shown, in their order."""
    runs = list(metrics)
    clients = [*dict.fromkeys(c for run in runs for c in metrics[run] if c != MEAN), MEAN]
    figure = Figure(figsize=(min(12.0, 1.6 + 2.0 * len(clients)), 0.9 + 0.3 * len(runs)))
    panels = figure.subplots(1, len(clients), sharey=True, squeeze=False)[0]
    for axis, client in zip(panels, clients, strict=True):
        for row, run in enumerate(runs):
            own = metrics[run].get(client)
            if own is None or metric not in own:
                continue
            value, low, high = (own[name] for name in (metric, f"{metric}_low", f"{metric}_high"))
            axis.plot([low, high], [row, row], color=colour(row), linewidth=2.2, solid_capstyle="butt")
            axis.plot([value], [row], color=colour(row), marker="o", markersize=5)
        axis.set_title("mean" if client == MEAN else client)
        axis.grid(axis="y", visible=False)
    panels[0].set_yticks(range(len(runs)), [labels[run] for run in runs])
    panels[0].invert_yaxis()
    figure.supxlabel(TITLES[metric], fontsize=9)
    figure.tight_layout()
    return figure
