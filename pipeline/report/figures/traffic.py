"""Bytes sent in a whole training, against exchanging the full model as often; the mean over seeds."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from pipeline.federated.history import History
from pipeline.report.figures.communication import MEGABYTE
from pipeline.report.figures.style import colour


def _messages(history: History) -> int:
    """An idle client is sent nothing and sends nothing."""
    return sum((one.bytes_up > 0) + (one.bytes_down > 0) for one in history)


def draw(histories: Mapping[str, History], full_model: int, seeds: int) -> Figure:
    """`histories`: of each run, of all seeds; runs that send nothing are left out.

    Args:
        full_model: bytes of the whole model, what each message would be without adapters.
    """
    sent = {run: sum(one.bytes_moved for one in history) // seeds for run, history in histories.items()}
    runs = [run for run, total in sent.items() if total]
    whole = {run: _messages(histories[run]) * full_model // seeds for run in runs}
    figure = Figure(figsize=(7.2, 0.75 + 0.55 * len(runs)))
    axis = figure.subplots()
    for offset, values, index, label in ((-0.18, sent, 7, "adapters"), (0.18, whole, 0, "full model")):
        megabytes = [values[run] / MEGABYTE for run in runs]
        bars = axis.barh([i + offset for i in range(len(runs))], megabytes, 0.34, color=colour(index), label=label)
        axis.bar_label(bars, [f"{m:,.0f} MB" for m in megabytes], padding=3, fontsize=8, color="#333333")
    axis.set_yticks(range(len(runs)), runs)
    axis.invert_yaxis()
    axis.set_xlabel("MB sent, up and down, all clients and rounds")
    axis.margins(x=0.15)
    axis.grid(axis="y", visible=False)
    figure.legend(loc="upper center", ncols=2, bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
