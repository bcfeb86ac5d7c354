"""What quality costs in bytes: every method that communicates, and the same with whole models."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from pipeline.federated.history import History, mean_by_round
from pipeline.report.figures.style import colour, marker, transposed

MEGABYTE = 1e6


def path_of(history: History, factor: float = 1.0) -> list[tuple[float, float]]:
    """(MB sent so far by all, mean validation loss over clients), a point a round; both are means over seeds.

    Args:
        factor: how many times larger every message would have been: a whole model for every adapter.
    """
    seeds = len({one.seed for one in history})
    points: list[tuple[float, float]] = []
    sent = 0.0
    for number, loss in mean_by_round(history, lambda one: one.validation_loss):
        sent += factor * sum(one.bytes_moved for one in history if one.round == number) / seeds
        points.append((sent / MEGABYTE, loss))
    return points


def draw(
    histories: Mapping[str, History],
    labels: Mapping[str, str],
    colours: Mapping[str, str],
    rouge: Mapping[str, tuple[float, float]],
    factor: float,
) -> Figure:
    """Left, validation loss by round; right, ROUGE of the best rounds. Runs that send nothing are left out.

    Args:
        histories: of each run.
        labels, colours: of each run.
        rouge: run -> (MB until its best rounds, average ROUGE on the test sets), of those with summaries.
        factor: see `path_of`.
    """
    sending = {run: history for run, history in histories.items() if any(one.bytes_up for one in history)}
    figure = Figure(figsize=(9.6, 3.6))
    losses, scores = figure.subplots(1, 2, width_ratios=(3, 2))
    for index, (run, history) in enumerate(sending.items()):
        style = {"color": colours[run], "marker": marker(index)}
        for larger, line in ((1.0, "-"), (factor, ":")):
            points = path_of(history, larger)
            name = labels[run] if larger == 1.0 else None
            losses.plot(*transposed(points), line, label=name, **style)
            if run in rouge:
                fill = colours[run] if larger == 1.0 else "none"
                scores.plot([larger * rouge[run][0]], [rouge[run][1]], markerfacecolor=fill, **style)
    for axis in (losses, scores):
        axis.set_xscale("log")
    losses.set_xlabel("MB sent by all so far (dotted: if each message were the whole model)")
    losses.set_ylabel("validation loss, nats a token")
    scores.set_xlabel("MB until the best rounds (hollow: whole model)")
    scores.set_ylabel("average ROUGE on the test sets")
    figure.legend(loc="upper center", ncols=4, bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure


def draw_totals(histories: Mapping[str, History], seeds: int) -> Figure:
    """MB sent in a whole training, both ways and of all clients, mean over seeds; of runs that send anything."""
    sent = {run: sum(one.bytes_moved for one in history) / seeds / MEGABYTE for run, history in histories.items()}
    runs = [run for run, total in sent.items() if total]
    figure = Figure(figsize=(7.2, 0.75 + 0.34 * len(runs)))
    axis = figure.subplots()
    bars = axis.barh(range(len(runs)), [sent[run] for run in runs], 0.6, color=colour(7))
    written = [f"{sent[run]:,.0f} MB" if sent[run] >= 10 else f"{sent[run]:.2g} MB" for run in runs]
    axis.bar_label(bars, written, padding=3, fontsize=8, color="#333333")
    axis.set_yticks(range(len(runs)), runs)
    axis.invert_yaxis()
    axis.set_xlabel("MB sent, up and down, all clients and rounds")
    axis.margins(x=0.15)
    axis.grid(axis="y", visible=False)
    figure.tight_layout()
    return figure
