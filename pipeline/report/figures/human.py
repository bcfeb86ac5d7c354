"""Fig. 5: how often raters preferred our method's summary, a bar for each other method."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from pipeline.evaluation.intervals import Interval
from pipeline.report.figures.style import colour


def draw(found: Mapping[str, Mapping[str, Interval]], ours: str) -> Figure:
    """Stacked bars of shares in percent, with intervals where there is room; `found` is method -> outcome -> share."""
    figure, left = Figure(figsize=(7.2, 1.2 + 0.6 * len(found))), np.zeros(len(found))
    axis = figure.subplots()
    for outcome, number in {"win": 7, "tie": 0, "loss": 6}.items():
        own = [shares[outcome].times(100) for shares in found.values()]
        widths, names = [share.value for share in own], [f"against {method}" for method in found]
        bars = axis.barh(names, widths, left=left, color=colour(number), height=0.55, label=outcome)
        texts = [f"{share.value:.0f}%\n{share.span(0)}" if share.value > 6 else "" for share in own]
        axis.bar_label(bars, texts, label_type="center", color="white", fontsize=7)
        left += widths
    axis.invert_yaxis()
    axis.set_xlabel(f"% of ratings, {ours} wins / ties / loses, with 95% intervals")
    axis.grid(visible=False)
    figure.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
