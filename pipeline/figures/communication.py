"""What a validation loss costs in bytes: every method that communicates, and the same rounds with the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from pipeline.figures.style import colour, marker

MEGABYTE = 1e6


def path_of(rows: Sequence[Mapping[str, str]], full_model: int | None = None) -> list[tuple[float, float]]:
    """(MB sent so far by all, mean validation loss over clients), a point a round; the mean over seeds.

    Args:
        full_model: bytes of a whole model, if every message had been one.
    """
    points: list[tuple[float, float]] = []
    sent = 0.0
    for number in sorted({int(row["round"]) for row in rows}):
        own = [row for row in rows if int(row["round"]) == number]
        seeds = len(own) / len({row["client"] for row in own})
        if full_model is None:
            sent += sum(int(row["bytes_up"]) + int(row["bytes_down"]) for row in own) / seeds
        else:
            sent += 2 * full_model * sum(int(row["steps"]) > 0 for row in own) / seeds
        points.append((sent / MEGABYTE, fmean(float(row["validation_loss"]) for row in own)))
    return points


def draw(histories: Mapping[str, Sequence[Mapping[str, str]]], full_model: int) -> Figure:
    """`histories`: run -> rows of its history.csv; runs that send nothing are left out."""
    sending = {run: rows for run, rows in histories.items() if any(int(row["bytes_up"]) for row in rows)}
    figure = Figure(figsize=(8.2, 3.6))
    axis = figure.subplots()
    for index, (run, rows) in enumerate(sending.items()):
        for whole, line in ((None, "-"), (full_model, ":")):
            points = path_of(rows, whole)
            axis.plot(
                [x for x, _ in points],
                [y for _, y in points],
                line,
                color=colour(index + 1),
                marker=marker(index + 1),
                label=run if whole is None else None,
            )
    axis.set_xscale("log")
    axis.set_xlabel("MB sent by all so far (dotted: if every message were the whole model in fp32)")
    axis.set_ylabel("validation loss, nats a token")
    figure.legend(loc="upper center", ncols=4, bbox_to_anchor=(0.5, 0.0))
    figure.tight_layout()
    return figure
