"""The main table and its runs' rounds, as rows of CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.intervals import columns
from pipeline.federated.history import History, best_rounds, columns_of
from pipeline.report.figures.style import Look
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json


def main_table(results: Results, metrics: Sequence[Metric], looks: Mapping[str, Look]) -> list[Json]:
    """Rows of main.csv: one a client and run; each figure with its interval."""
    rows = []
    for client in dict.fromkeys(client for own in results.metrics.values() for client in own):
        for run, figures in ((run, own) for run, own in results.metrics.items() if client in own):
            row: Json = {"client": client, "run": run, "method": looks[run].label}
            for metric in metrics:
                one = figures[client].metrics.get(metric.name)
                if metric.over is not None and metric.over in figures[client].metrics:
                    row[metric.over] = round(figures[client].metrics[metric.over].value, 6)
                row |= columns(one, metric.name, f"{metric.name}_low", f"{metric.name}_high")
            best = best_rounds(results.histories[run], client)
            rows.append(row | {"best_round": "/".join(map(str, best))})
    return rows


def history_rows(histories: Mapping[str, History]) -> tuple[list[Json], list[str]]:
    """(Every round of every run, for what is read where models/ is not; the columns)."""
    rows = [{"run": name, "seed": one.seed} | one.to_row() for name, history in histories.items() for one in history]
    return rows, ["run", "seed", *columns_of(one for history in histories.values() for one in history)]
