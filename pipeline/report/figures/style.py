"""How all figures look, and how they are saved: PNG and SVG, the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.evaluation.intervals import Interval
from pipeline.workspace.files import replacing

mpl.use("Agg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "quorum",
        "svg.fonttype": "none",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#888888",
        "axes.labelcolor": "#333333",
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "xtick.color": "#555555",
        "ytick.color": "#555555",
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "grid.linewidth": 0.7,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "figure.dpi": 100,
        "savefig.bbox": "tight",
        "lines.linewidth": 1.8,
        "lines.markersize": 5,
    }
)

# Okabe & Ito's palette, for colour-blind readers, and five of Tol's muted one; our method's colour is strong.
PALETTE = (
    *("#999999", "#E69F00", "#56B4E9", "#009E73", "#8C6D31", "#CC79A7", "#D55E00", "#0072B2", "#000000"),
    *("#332288", "#44AA99", "#882255", "#AA4499", "#661100"),
)
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "*", "<")


def colour(index: int) -> str:
    """A colour of the palette, which repeats."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """A marker, of a list which repeats."""
    return MARKERS[index % len(MARKERS)]


def transposed(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Points as matplotlib takes them: all x, all y."""
    return [x for x, _ in points], [y for _, y in points]


def interval_row(axis: Axes, row: int, interval: Interval, points: Sequence[float], colour: str) -> None:
    """A value with its interval on the line `row`; `points`, those of each seed, when there are several."""
    axis.plot(interval.ends, [row, row], color=colour, linewidth=2.4, solid_capstyle="butt")
    axis.plot([interval.value], [row], color=colour, marker="o", markersize=6)
    if len(points) > 1:
        axis.plot(points, [row] * len(points), "o", markersize=3, color="white", markeredgecolor=colour)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write `<name>.png` and `<name>.svg`."""
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        with replacing(folder / f"{name}.{kind}") as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
