"""Whether the teacher is better where it is surer: ten groups of reference tokens by the teacher's entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.report.figures.style import colour, marker


def draw(deciles: Mapping[str, Sequence[Mapping[str, float]]], tau: float) -> Figure:
    """`deciles`: client -> its groups, the surest first."""
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
