"""Bytes against quality, as a piece of the page: the bytes by which each run reaches AdaFedAvg's best loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from markupsafe import Markup

from pipeline.evaluation.scores import MEAN
from pipeline.federated.history import History
from pipeline.report.figures import communication
from pipeline.report.page import Canvas, piece
from pipeline.runs.results import Results


def bytes_sent(
    canvas: Canvas,
    results: Results,
    runs: Sequence[str],
    named: Mapping[str, str],
    colours: Mapping[str, str],
    full_model: int,
) -> list[Markup]:
    """Validation loss against bytes, and the bytes that reach the best loss of the first run, AdaFedAvg."""
    shown = {run: results.histories[run] for run in runs if run in results.histories and run in results.metrics}
    if runs[0] not in shown:
        return []
    factor = full_model / max(one.bytes_up for one in shown[runs[0]])
    figures = {run: results.metrics[run][MEAN] for run in shown}
    rouge = {
        run: (_sent_until_best(shown[run]), own.metrics["average"].value)
        for run, own in figures.items()
        if "average" in own.metrics
    }
    figure = communication.draw(shown, named, colours, rouge, factor)
    pieces = [canvas.place(figure, "communication", "communication", runs=list(shown))]
    goal = min(loss for _, loss in communication.path_of(shown[runs[0]]))
    head = (
        *(f"to AdaFedAvg’s best loss, {goal:.3f}", "MB, adapters", "MB, full model"),
        *("MB to its own best rounds", "test loss then", "average ROUGE then"),
    )
    rows = [
        (
            named[run],
            _reached(communication.path_of(history), goal),
            _reached(communication.path_of(history, factor), goal),
            f"{_sent_until_best(history):,.0f}",
            f"{figures[run].metrics['loss'].value:.3f}",
            f"{rouge[run][1]:.2f}" if run in rouge else "–",
        )
        for run, history in shown.items()
        if any(one.bytes_up for one in history)
    ]
    return [*pieces, piece("table", head=head, rows=rows)]


def _reached(path: Sequence[tuple[float, float]], goal: float) -> str:
    return next((f"{sent:,.0f}" for sent, loss in path if loss <= goal), "not reached")


def _sent_until_best(history: History) -> float:
    """MB of adapters until the last of the clients' best rounds, the mean over seeds."""
    sent = []
    for seed in dict.fromkeys(one.seed for one in history):
        own = [one for one in history if one.seed == seed]
        until = max(one.round for one in own if one.best)
        sent.append(sum(one.bytes_moved for one in own if one.round <= until))
    return fmean(sent) / communication.MEGABYTE
