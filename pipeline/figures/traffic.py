"""Bytes sent in a whole training, against exchanging the full model as often; the mean over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.figures.communication import MEGABYTE
from pipeline.figures.style import colour


def _messages(rows: Sequence[Mapping[str, str]]) -> int:
    """An idle client is sent nothing and sends nothing."""
    return sum(int(row[way]) > 0 for row in rows for way in ("bytes_up", "bytes_down"))


def draw(histories: Mapping[str, Sequence[Mapping[str, str]]], full_model: int, seeds: int) -> Figure:
    """`histories`: run -> rows of its history.csv, of all seeds; runs that send nothing are left out.

    Args:
        full_model: bytes of the whole model, what each message would be without adapters.
    """
    sent = {
        run: sum(int(r["bytes_up"]) + int(r["bytes_down"]) for r in rows) // seeds for run, rows in histories.items()
    }
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
