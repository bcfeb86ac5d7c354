"""The teacher: what it is sure of, by round, and whether it is better where it is surer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.federated.history import History, mean_by_round
from pipeline.report.figures.style import colour, marker, transposed


def draw_rounds(history: History, clients: Sequence[str], tau: float) -> Figure:
    """The share of target tokens distilled, and the teacher's mean entropy; `history`: the selective run's."""
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


def draw_deciles(deciles: Mapping[str, Sequence[Mapping[str, float]]], tau: float) -> Figure:
    """Ten groups of reference tokens by the teacher's entropy; `deciles`: client -> its groups, the surest first."""
    figure = Figure(figsize=(8.2, 3.0))
    left, right = figure.subplots(1, 2)
    for index, (client, groups) in enumerate(deciles.items()):
        entropies = [group["entropy"] for group in groups]
        style = {"color": colour(index + 1), "marker": marker(index + 1), "label": client}
        left.plot(entropies, [100 * group["teacher_better"] for group in groups], **style)
        right.plot(entropies, [group["gain"] for group in groups], **style)
    left.axhline(50, color="#999999", linewidth=1)
    right.axhline(0, color="#999999", linewidth=1)
    for axis in (left, right):
        axis.axvline(tau, color="#999999", linestyle="--", linewidth=1)
        axis.set_xlabel("mean teacher entropy of the decile, nats")
    left.set_title("teacher gives the reference more, % of tokens", fontsize=9)
    right.set_title("ln q of the reference, teacher − student, nats", fontsize=9)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
