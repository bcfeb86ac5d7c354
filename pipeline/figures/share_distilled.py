"""What the teacher is sure of, by round: the share of target tokens distilled, and its mean entropy."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure

from pipeline.figures.style import colour, marker
from pipeline.history import History


def draw(history: History, clients: Sequence[str], tau: float) -> Figure:
    """`history`: the selective run's."""
    figure = Figure(figsize=(7.2, 3.0))
    left, right = figure.subplots(1, 2)
    for index, client in enumerate(clients):
        # An idle client distils nothing, nor does one before the first round that distils.
        own = [one for one in history if one.client == client and one.share_distilled is not None]
        rounds = sorted({one.round for one in own})
        for axis, column, scale in ((left, "share_distilled", 100.0), (right, "teacher_entropy", 1.0)):
            values = [scale * fmean(getattr(one, column) for one in own if one.round == n) for n in rounds]
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
