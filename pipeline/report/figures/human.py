"""Fig. 5: how often raters preferred our method's summary, a bar an opponent; nothing is drawn without ratings."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from pipeline.evaluation.agreement import Outcomes
from pipeline.report.figures.style import colour

COLOURS = {"win": 7, "tie": 0, "loss": 6}


def draw(found: Sequence[Outcomes], ours: str) -> Figure:
    figure = Figure(figsize=(7.2, 1.2 + 0.6 * len(found)))
    axis = figure.subplots()
    for row, outcomes in enumerate(found):
        start = 0.0
        for outcome, share in outcomes.shares.items():
            width, label = 100 * share.value, outcome if row == 0 else None
            axis.barh(row, width, left=start, color=colour(COLOURS[outcome]), height=0.55, label=label)
            if width > 6:
                text = f"{width:.0f}%\n{share.times(100).span(0)}"
                axis.text(start + width / 2, row, text, ha="center", va="center", color="white", fontsize=7)
            start += width
    axis.set_yticks(range(len(found)), [f"against {outcomes.against}" for outcomes in found])
    axis.invert_yaxis()
    axis.set_xlabel(f"% of ratings, {ours} wins / ties / loses, with 95% intervals")
    axis.grid(visible=False)
    figure.legend(loc="upper center", ncols=3, bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
