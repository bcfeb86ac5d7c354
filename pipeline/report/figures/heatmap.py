"""Square tables as pictures: a panel a table, every cell with its number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

Table = Mapping[str, Mapping[str, float]]
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
"""Of red, green and blue: ITU-R BT.709."""


def draw(
    tables: Mapping[str, Table],
    rows: str,
    columns: str,
    colours: str = "Blues",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """A number in each cell, dark ink on light cells and light ink on dark ones.

    Args:
        tables: title -> row -> column -> number.
        rows, columns: what they are.
        limits: the numbers at the ends of the colours; None: each column has its own least and largest there.
    """
    size = max(len(table) for table in tables.values())
    figure = Figure(figsize=((1.3 + 0.95 * size) * len(tables), 1.3 + 0.62 * size))
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for axis, (title, table) in zip(panels, tables.items(), strict=True):
        names = list(table)
        across = list(next(iter(table.values())))
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
    figure.tight_layout()
    return figure
