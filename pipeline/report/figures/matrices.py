"""Tables as pictures: numbers in cells, labels by client, and divergences between clients."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from pipeline.evaluation.pooled import LabelCounts
from pipeline.report.figures.style import colour, side_by_side

Array = NDArray[np.float64]
Table = Mapping[str, Mapping[str, float]]
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of red, green and blue: ITU-R BT.709
BINS = 20  # bins of a histogram; fewer where all clients are about as large
MANY = 30  # with more labels their names are left out, which would be too small


def draw_cells(
    tables: Mapping[str, Table],
    rows: str,
    columns: str,
    colours: str = "Blues",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """A panel a square table with a number in each cell, dark ink on light cells and light ink on dark ones.

    `tables`: title -> row -> column -> number. `limits`: the numbers at the ends of the colours; None: each column has
    its own least and largest there.
    """
    size = max(len(table) for table in tables.values())
    figure, panels = side_by_side(len(tables), (1.3 + 0.95 * size) * len(tables), 1.3 + 0.62 * size)
    for axis, (title, table) in zip(panels, tables.items(), strict=True):
        names, across = list(table), list(next(iter(table.values())))
        values = np.array([[table[row][column] for column in across] for row in names])
        low, high = limits or (values.min(axis=0), values.max(axis=0))
        cells = colormaps[colours]((values - low) / np.maximum(high - low, 1e-12))
        axis.imshow(cells, aspect="auto")
        for i, j in np.ndindex(values.shape):
            ink = "#222222" if cells[i, j, :3] @ LUMINANCE > 0.5 else "white"
            axis.text(j, i, f"{values[i, j]:.3f}", ha="center", va="center", color=ink, fontsize=8)
        axis.set_xticks(range(len(across)), across, rotation=25, ha="right")
        axis.set_yticks(range(len(names)), names)
        axis.set_title(title)
        axis.set_xlabel(columns)
        axis.grid(visible=False)
    panels[0].set_ylabel(rows)
    return figure


def draw_gallery(label_counts: LabelCounts, distances: Array) -> Figure:
    """Shares of labels by client, sizes, and Jensen-Shannon divergences in bits."""
    figure, (labels_axis, sizes_axis, distance_axis) = side_by_side(3, 11, 3.1, width_ratios=[1.3, 1, 1])
    labels = sorted({label for counts in label_counts.values() for label in counts})
    shares = np.array([[counts.get(label, 0) for label in labels] for counts in label_counts.values()], dtype=float)
    shares /= shares.sum(1, keepdims=True)
    _shares(labels_axis, shares.T, "share of each label", aspect="auto", cmap="Blues")
    labels_axis.set_xlabel(f"{len(label_counts)} clients")
    if len(labels) <= MANY:
        labels_axis.set_yticks(range(len(labels)), labels, fontsize=6)
    sizes = [sum(counts.values()) for counts in label_counts.values()]
    few = max(sizes) - min(sizes) < BINS
    sizes_axis.hist(sizes, bins=np.arange(min(sizes), max(sizes) + 2) - 0.5 if few else BINS, color=colour(7))
    sizes_axis.locator_params("x", integer=True)
    sizes_axis.set_title("texts a client")
    sizes_axis.set_xlabel(" to ".join(map(str, sorted({min(sizes), max(sizes)}))))
    shown = _shares(distance_axis, distances, "distance between clients")
    figure.colorbar(shown, ax=distance_axis, shrink=0.8)
    return figure


def draw_distances(panels: Mapping[str, Array]) -> Figure:
    """Fig. 2's matrices side by side, rows by falling sum."""
    figure = Figure(figsize=(2.7 * len(panels), 2.9), layout="constrained")
    axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
    for axis, (title, distances) in zip(axes, panels.items(), strict=True):
        shown = _shares(axis, distances, title)
        axis.set_xlabel("client")
    figure.colorbar(shown, ax=axes, shrink=0.8, label="bits")
    return figure


def _shares(
    axis: Axes, values: Array, title: str, cmap: str = "viridis", aspect: Literal["auto"] | None = None
) -> AxesImage:
    """Numbers from 0 to 1 as colours."""
    axis.set_title(title)
    axis.grid(visible=False)
    return axis.imshow(values, cmap=cmap, aspect=aspect, vmin=0, vmax=1, interpolation="nearest")
