"""Lines over rounds, time, bytes and the teacher's entropy."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.federated.history import History, Round, mean_by_round
from pipeline.report.figures.style import Look, by_round, colour, legend_below, line, side_by_side

MEGABYTE = 1e6
Points = Sequence[tuple[float, float]]
GREY = "#999999"


def draw_curves(panels: Mapping[str, Mapping[str, Points]], up: str, across: str = "round") -> Figure:
    """A line a run, a panel with its own legend for each group of runs."""
    figure, axes = side_by_side(len(panels), max(6.2, 4.2 * len(panels)), 3.2)
    for axis, (title, runs) in zip(axes, panels.items(), strict=True):
        for number, (run, points) in enumerate(runs.items()):
            every = 1 + len(points) // 30  # markers of a longer curve would hide it
            line(axis, points, number, run, color=colour(number + 1), markersize=3.5, markevery=every)
        axis.set_title(title)
        by_round(axis)
        axis.set_xlabel(across)
        axis.legend(fontsize=7)
    axes[0].set_ylabel(up)
    return figure


def draw_validation(histories: Mapping[str, History], clients: Sequence[str], looks: Mapping[str, Look]) -> Figure:
    """Validation loss by round, the mean over seeds: a panel a client, a line a run."""
    figure, axes = side_by_side(len(clients), 3.1 * len(clients), 3.0)
    for axis, client in zip(axes, clients, strict=True):
        for index, (run, history) in enumerate(histories.items()):
            points = _of_client(history, client, lambda one: one.validation_loss)
            line(axis, points, index, looks[run].label, color=looks[run].colour)
        axis.set_title(client)
        by_round(axis)
    axes[0].set_ylabel("validation loss, nats a token")
    legend_below(figure)
    return figure


def _of_client(history: History, client: str, value: Callable[[Round], float | None]) -> Points:
    return mean_by_round([one for one in history if one.client == client], value)


def draw_distilled(history: History, clients: Sequence[str], tau: float) -> Figure:
    """The share of target tokens distilled, and the teacher's mean entropy; `history`: the selective run's."""
    figure, (left, right) = side_by_side(2, 7.2, 3.0)
    for index, client in enumerate(clients):
        style = {"color": colour(index + 5)}
        shares = _of_client(history, client, lambda one: one.figures.get("share_distilled"))
        line(left, [(number, 100 * share) for number, share in shares], index, client, **style)
        line(right, _of_client(history, client, lambda one: one.figures.get("teacher_entropy")), index, client, **style)
    left.set_title("Target tokens distilled")
    left.set_ylabel("share, %")
    right.set_title(f"Mean entropy of the teacher (τ = {tau:g})")
    right.set_ylabel("nats")
    for axis in (left, right):
        by_round(axis)
    legend_below(figure)
    return figure


def draw_deciles(deciles: Mapping[str, Sequence[Mapping[str, float]]], tau: float) -> Figure:
    """Ten groups of reference tokens by the teacher's entropy; `deciles`: client -> its groups, the surest first."""
    figure, (left, right) = side_by_side(2, 8.2, 3.0)
    for index, (client, groups) in enumerate(deciles.items()):
        line(left, [(one["entropy"], 100 * one["teacher_better"]) for one in groups], index + 1, client)
        line(right, [(one["entropy"], one["gain"]) for one in groups], index + 1, client)
    left.axhline(50, color=GREY, linewidth=1)
    right.axhline(0, color=GREY, linewidth=1)
    for axis in (left, right):
        axis.axvline(tau, color=GREY, linestyle="--", linewidth=1)
        axis.set_xlabel("mean teacher entropy of the decile, nats")
    left.set_title("teacher gives the reference more, % of tokens", fontsize=9)
    right.set_title("ln q of the reference, teacher − student, nats", fontsize=9)
    legend_below(figure)
    return figure


def path_of(history: History, factor: float = 1.0) -> list[tuple[float, float]]:
    """(MB sent so far by all, mean validation loss over clients), a point a round; both are means over seeds.

    `factor`: how many times larger every message would have been: a whole model for every adapter.
    """
    seeds, points, sent = len({one.seed for one in history}), [], 0.0
    for number, loss in mean_by_round(history, lambda one: one.validation_loss):
        sent += factor * sum(one.bytes_moved for one in history if one.round == number) / seeds
        points.append((sent / MEGABYTE, loss))
    return points


def draw_bytes(
    histories: Mapping[str, History], looks: Mapping[str, Look], rouge: Mapping[str, tuple[float, float]], factor: float
) -> Figure:
    """Left, validation loss against bytes by round; right, ROUGE of the best rounds, of runs that send anything.

    `rouge`: run -> (MB until its best rounds, average ROUGE on the test sets), of those with summaries. `factor`: see
    `path_of`.
    """
    sending = {run: history for run, history in histories.items() if any(one.bytes_up for one in history)}
    figure, (losses, scores) = side_by_side(2, 9.6, 3.6, width_ratios=(3, 2))
    for index, (run, history) in enumerate(sending.items()):
        own = looks[run].colour
        for larger, dashes, label, fill in ((1.0, "-", looks[run].label, own), (factor, ":", None, "none")):
            line(losses, path_of(history, larger), index, label, color=own, linestyle=dashes)
            if run in rouge:
                sent, score = rouge[run]
                line(scores, [(larger * sent, score)], index, color=own, markerfacecolor=fill)
    for axis in (losses, scores):
        axis.set_xscale("log")
    losses.set_xlabel("MB sent by all so far (dotted: if each message were the whole model)")
    losses.set_ylabel("validation loss, nats a token")
    scores.set_xlabel("MB until the best rounds (hollow: whole model)")
    scores.set_ylabel("average ROUGE on the test sets")
    legend_below(figure, columns=4)
    return figure
