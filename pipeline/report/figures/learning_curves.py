"""Validation loss by round: a panel a client, a line a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.federated.history import History, mean_by_round
from pipeline.report.figures.style import marker, transposed


def draw(histories: Mapping[str, History], clients: Sequence[str], colours: Mapping[str, str]) -> Figure:
    """`histories`: of each run; points are averaged over seeds."""
    figure = Figure(figsize=(3.1 * len(clients), 3.0))
    axes = figure.subplots(1, len(clients), squeeze=False)[0]
    for axis, client in zip(axes, clients, strict=True):
        for index, (run, history) in enumerate(histories.items()):
            own = [one for one in history if one.client == client]
            points = mean_by_round(own, lambda one: one.validation_loss)
            axis.plot(*transposed(points), color=colours[run], marker=marker(index), label=run)
        axis.set_title(client)
        axis.set_xlabel("round")
        axis.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel("validation loss, nats a token")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=max(1, min(6, len(labels))), bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
