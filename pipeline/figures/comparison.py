"""Runs side by side: a panel a client and one for the mean, average ROUGE above and test loss below, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from pipeline.evaluation.scores import MEAN
from pipeline.figures.style import colour

TITLES = {"average": "average ROUGE", "loss": "test loss, nats a token\n(less is better)"}


def draw(metrics: Mapping[str, Mapping[str, Mapping[str, Any]]], labels: Mapping[str, str]) -> Figure:
    """`metrics`: run -> client -> figures, of the runs shown, in their order; without summaries there is no ROUGE."""
    runs = list(metrics)
    clients = [*dict.fromkeys(c for run in runs for c in metrics[run] if c != MEAN), MEAN]
    shown = [metric for metric in TITLES if any(metric in metrics[run][MEAN] for run in runs)]
    figure = Figure(figsize=(min(12.0, 1.6 + 2.0 * len(clients)), (0.9 + 0.3 * len(runs)) * len(shown)))
    grid = figure.subplots(len(shown), len(clients), sharey=True, squeeze=False)
    for metric, panels in zip(shown, grid, strict=True):
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
        panels[0].set_ylabel(TITLES[metric])
    grid[0, 0].set_yticks(range(len(runs)), [labels[run] for run in runs])
    grid[0, 0].set_ylim(len(runs) - 0.5, -0.5)
    figure.tight_layout()
    return figure
