"""How all figures look, and how they are saved: PNG and SVG, the same bytes for the same data."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Look:
    """What a run is called in tables and figures, and its colour."""

    label: str
    colour: str


def colour(index: int) -> str:
    """A colour of the palette, which repeats."""
    return PALETTE[index % len(PALETTE)]


def side_by_side(panels: int, width: float, height: float, **more: Any) -> tuple[Figure, list[Any]]:
    """A figure of this size in inches with panels (axes) in a row; `more` goes to matplotlib's `subplots`."""
    figure = Figure(figsize=(width, height))
    return figure, list(figure.subplots(1, panels, squeeze=False, **more)[0])


def line(axis: Axes, points: Sequence[tuple[float, float]], index: int, label: str | None = None, **style: Any) -> None:
    """A line through (x, y) with the marker of an index, and its colour unless another is given."""
    style = {"marker": MARKERS[index % len(MARKERS)], "color": colour(index), "label": label} | style
    axis.plot([x for x, _ in points], [y for _, y in points], **style)


def by_round(axis: Axes) -> None:
    """Rounds as the horizontal axis."""
    axis.set_xlabel("round")
    axis.locator_params("x", integer=True)


def legend_below(figure: Figure, columns: int = 6) -> None:
    """One legend of the first panel's lines or bars, below all panels."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = max(1, min(columns, len(labels)))
    figure.legend(handles, labels, loc="upper center", ncols=columns, bbox_to_anchor=(0.5, 0.0))


def interval_row(axis: Axes, row: int, interval: Interval, points: Sequence[float], colour: str) -> None:
    """A value with its interval on the line `row`; `points`, those of each seed, when there are several."""
    axis.plot(interval.ends, [row, row], color=colour, linewidth=2.4, solid_capstyle="butt")
    axis.plot([interval.value], [row], color=colour, marker="o", markersize=6)
    if len(points) > 1:
        axis.plot(points, [row] * len(points), "o", markersize=3, color="white", markeredgecolor=colour)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write `<name>.png` and `<name>.svg`."""
    if figure.get_layout_engine() is None:
        figure.tight_layout()
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        with replacing(folder / f"{name}.{kind}") as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
