"""A federation's labels, sizes and distances, a panel each; and curves of several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pipeline.evaluation.pooled import LabelCounts
from pipeline.report.figures.style import colour, marker

Array = NDArray[np.float64]
BINS = 20
"""Bins of a histogram; fewer where all clients are about as large."""
MANY = 30
"""With more labels their names are left out, which would be too small."""


def draw_gallery(label_counts: LabelCounts, distances: Array) -> Figure:
    """Shares of labels by client, sizes, and Jensen-Shannon divergences in bits."""
    figure = Figure(figsize=(11, 3.1))
    labels_axis, sizes_axis, distance_axis = figure.subplots(1, 3, width_ratios=[1.3, 1, 1])
    labels = sorted({label for counts in label_counts.values() for label in counts})
    shares = np.array([[counts.get(label, 0) for label in labels] for counts in label_counts.values()], dtype=float)
    shares /= shares.sum(1, keepdims=True)
    labels_axis.imshow(shares.T, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    labels_axis.set_title("share of each label")
    labels_axis.set_xlabel(f"{len(label_counts)} clients")
    if len(labels) <= MANY:
        labels_axis.set_yticks(range(len(labels)), labels, fontsize=6)
    sizes = [sum(counts.values()) for counts in label_counts.values()]
    few = max(sizes) - min(sizes) < BINS
    sizes_axis.hist(sizes, bins=np.arange(min(sizes), max(sizes) + 2) - 0.5 if few else BINS, color=colour(7))
    sizes_axis.xaxis.get_major_locator().set_params(integer=True)
    sizes_axis.set_title("texts a client")
    sizes_axis.set_xlabel(f"{min(sizes)} to {max(sizes)}")
    shown = distance_axis.imshow(distances, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
    distance_axis.set_title("distance between clients")
    figure.colorbar(shown, ax=distance_axis, shrink=0.8)
    for axis in (labels_axis, distance_axis):
        axis.grid(visible=False)
    figure.tight_layout()
    return figure


def draw_distances(panels: Mapping[str, Array]) -> Figure:
    """Fig. 2's matrices side by side, rows by falling sum."""
    figure = Figure(figsize=(2.7 * len(panels), 2.9), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, distances) in zip(axes, panels.items(), strict=True):
        shown = axis.imshow(distances, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
        axis.set_title(title)
        axis.set_xlabel("client")
        axis.grid(visible=False)
    figure.colorbar(shown, ax=list(axes), shrink=0.8, label="bits")
    return figure


def draw_curves(panels: Mapping[str, Mapping[str, Sequence[float]]], across: str, up: str) -> Figure:
    """A line a run, a panel a group of runs."""
    figure = Figure(figsize=(4.2 * len(panels), 3.1))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, values) in enumerate(curves.items()):
            style = {"color": colour(number + 1), "marker": marker(number), "markersize": 3.5}
            axis.plot(range(1, len(values) + 1), values, label=name, **style)
        axis.set_title(title)
        axis.set_xlabel(across)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.legend(fontsize=7)
    axes[0].set_ylabel(up)
    figure.tight_layout()
    return figure


def draw_costs(points: Mapping[str, tuple[float, float]], across: str, up: str) -> Figure:
    """A point a run: what it sends, and what it reaches."""
    figure = Figure(figsize=(4.6, 3.1))
    axis = figure.subplots()
    for number, (name, (cost, value)) in enumerate(points.items()):
        axis.plot([cost], [value], marker=marker(number), color=colour(number + 1), linestyle="none", label=name)
    costs = [cost for cost, _ in points.values() if cost > 0]
    if costs and max(costs) >= 10 * min(costs):  # on less than a decade a logarithmic axis has no round ticks
        axis.set_xscale("log")
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    axis.legend(fontsize=7)
    figure.tight_layout()
    return figure
