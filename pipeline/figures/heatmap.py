"""Square tables as pictures: a panel a table, every cell with its number."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

Table = Mapping[str, Mapping[str, float]]


def draw(tables: Mapping[str, Table], rows: str, columns: str, colours: str = "Blues") -> Figure:
    """`tables`: title -> row -> column -> number; `rows` and `columns` say what they are."""
    size = max(len(table) for table in tables.values())
    figure = Figure(figsize=((1.3 + 0.95 * size) * len(tables), 1.3 + 0.62 * size))
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for axis, (title, table) in zip(panels, tables.items(), strict=True):
        names = list(table)
        across = list(next(iter(table.values())))
        values = [[table[row][column] for column in across] for row in names]
        axis.imshow(values, cmap=colours, aspect="auto")
        middle = (min(map(min, values)) + max(map(max, values))) / 2
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                shade = "white" if value > middle else "#222222"
                axis.text(j, i, f"{value:.3f}", ha="center", va="center", color=shade, fontsize=8)
        axis.set_xticks(range(len(across)), across, rotation=25, ha="right")
        axis.set_yticks(range(len(names)), names)
        axis.set_title(title)
        axis.set_xlabel(columns)
        axis.grid(visible=False)
    panels[0].set_ylabel(rows)
    figure.tight_layout()
    return figure
