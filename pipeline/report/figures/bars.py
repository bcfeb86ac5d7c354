"""Bars: ratings, parts of speech, and bytes sent."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from pipeline.evaluation.intervals import Interval
from pipeline.federated.history import History
from pipeline.report.figures.curves import MEGABYTE
from pipeline.report.figures.style import colour, legend_below, side_by_side

SHOWN = 10  # the most parts of speech that a figure shows


def draw_ratings(found: Mapping[str, Mapping[str, Interval]], ours: str) -> Figure:
    """Fig. 5: stacked shares in percent, with intervals where there is room; `found` is method -> outcome -> share."""
    left, (figure, (axis,)) = np.zeros(len(found)), side_by_side(1, 7.2, 1.2 + 0.6 * len(found))
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
    legend_below(figure)
    return figure


def draw_parts_of_speech(rows: Sequence[Mapping[str, str]], client: str) -> Figure:
    """Fig. 11: parts of speech of the words learned (a) with the distillation loss, (b) without it.

    `rows`: of pos_kd.csv; the grey marks are the base rates, what either panel would show without selection.
    """
    own = [row for row in rows if row["client"] == client and row["pos"] != "all"][:SHOWN]
    figure, axes = side_by_side(2, 7.2, 3.0, sharey=True)
    names, base = [row["pos"] for row in own], [100 * float(row["base_rate"]) for row in own]
    mark = {"marker": "_", "markersize": 14, "markeredgewidth": 2, "color": "#444444", "label": "base rate"}
    panels = (("pos_given_distilled", 7, "(a) with"), ("pos_given_not_distilled", 6, "(b) without"))
    for axis, (column, index, title) in zip(axes, panels, strict=True):
        axis.bar(names, [100 * float(row[column]) for row in own], color=colour(index), width=0.7)
        axis.plot(names, base, linestyle="none", **mark)
        axis.set_title(f"{title} distillation")
        axis.tick_params(axis="x", rotation=45)
        axis.grid(axis="x", visible=False)
    axes[0].set_ylabel(f"share of words, %  ({client})")
    axes[1].legend(loc="upper right")
    return figure


def draw_totals(histories: Mapping[str, History], seeds: int) -> Figure:
    """MB sent in a whole training, both ways and of all clients, mean over seeds; of runs that send anything."""
    sent = {run: sum(one.bytes_moved for one in history) / seeds / MEGABYTE for run, history in histories.items()}
    runs = [run for run, total in sent.items() if total]
    figure, (axis,) = side_by_side(1, 7.2, 0.75 + 0.34 * len(runs))
    bars = axis.barh(range(len(runs)), [sent[run] for run in runs], 0.6, color=colour(7))
    written = [f"{sent[run]:,.0f} MB" if sent[run] >= 10 else f"{sent[run]:.2g} MB" for run in runs]
    axis.bar_label(bars, written, padding=3, fontsize=8, color="#333333")
    axis.set_yticks(range(len(runs)), runs)
    axis.invert_yaxis()
    axis.set_xlabel("MB sent, up and down, all clients and rounds")
    axis.margins(x=0.15)
    axis.grid(axis="y", visible=False)
    return figure
