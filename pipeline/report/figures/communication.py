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


def draw_totals(histories: Mapping[str, History], full_model: int, seeds: int) -> Figure:
    """Bytes sent in a whole training, against exchanging the full model as often; the mean over seeds.

    `histories`: of each run, of all seeds; runs that send nothing are left out. `full_model`: bytes of the whole model.
    """
    sent = {run: sum(one.bytes_moved for one in history) // seeds for run, history in histories.items()}
    runs = [run for run, total in sent.items() if total]
    # An idle client is sent nothing and sends nothing.
    messages = {run: sum((one.bytes_up > 0) + (one.bytes_down > 0) for one in histories[run]) for run in runs}
    whole = {run: count * full_model // seeds for run, count in messages.items()}
    figure = Figure(figsize=(7.2, 0.75 + 0.55 * len(runs)))
    axis = figure.subplots()
    for offset, values, index, label in ((-0.18, sent, 7, "adapters"), (0.18, whole, 0, "full model")):
        megabytes = [values[run] / MEGABYTE for run in runs]
        bars = axis.barh([i + offset for i in range(len(runs))], megabytes, 0.34, color=colour(index), label=label)
        written = [f"{m:,.0f} MB" if m >= 10 else f"{m:.2g} MB" for m in megabytes]
        axis.bar_label(bars, written, padding=3, fontsize=8, color="#333333")
    axis.set_yticks(range(len(runs)), runs)
    axis.invert_yaxis()
    axis.set_xlabel("MB sent, up and down, all clients and rounds")
    axis.margins(x=0.15)
    axis.grid(axis="y", visible=False)
    figure.legend(loc="upper center", ncols=2, bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
