"""What the teacher is sure of, by round: the share of target tokens distilled, and its mean entropy."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from pipeline.federated.history import History, mean_by_round
from pipeline.report.figures.style import colour, marker, transposed


def draw(history: History, clients: Sequence[str], tau: float) -> Figure:
    """`history`: the selective run's."""
    figure = Figure(figsize=(7.2, 3.0))
    left, right = figure.subplots(1, 2)
    for index, client in enumerate(clients):
        own = [one for one in history if one.client == client]
        shares = [(n, 100 * share) for n, share in mean_by_round(own, lambda one: one.figures.get("share_distilled"))]
        entropies = mean_by_round(own, lambda one: one.figures.get("teacher_entropy"))
        for axis, points in ((left, shares), (right, entropies)):
            axis.plot(*transposed(points), color=colour(index + 5), marker=marker(index), label=client)
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
