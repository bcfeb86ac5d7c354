"""What the teacher is sure of, by round: the share of target tokens distilled, and its mean entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from pipeline.figures.style import colour, marker


def draw(rows: Sequence[Mapping[str, str]], clients: Sequence[str], tau: float) -> Figure:
    """`rows` of the selective run's history.csv, of all seeds."""
    figure = Figure(figsize=(7.2, 3.0))
    left, right = figure.subplots(1, 2)
    for index, client in enumerate(clients):
        own = [row for row in rows if row["client"] == client]
        # An idle client distils nothing, nor does one before the first round that distils.
        own = [row for row in own if row["share_distilled"]]
        rounds = sorted({int(row["round"]) for row in own})
        for axis, column, scale in ((left, "share_distilled", 100.0), (right, "teacher_entropy", 1.0)):
            values = [scale * fmean(float(r[column]) for r in own if int(r["round"]) == n) for n in rounds]
            axis.plot(rounds, values, color=colour(index + 5), marker=marker(index), label=client)
    left.set_title("Target tokens distilled")
    left.set_ylabel("share, %")
    right.set_title(f"Mean entropy of the teacher (τ = {tau:g})")
    right.set_ylabel("nats")
    for axis in (left, right):
        axis.set_xlabel("round")
        axis.xaxis.get_major_locator().set_params(integer=True)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=max(1, len(labels)), bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
