"""What the pages on summaries say of runs: their labels and colours, knobs, best rounds, and rows of CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.evaluation.intervals import columns
from pipeline.evaluation.scores import Figures
from pipeline.federated.history import History, best_rounds, columns_of
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.figures.style import Look, colour
from pipeline.report.page import Cell
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json


def looks(runs: Sequence[RunRow]) -> dict[str, Look]:
    """Run -> its look: a colour a method or part; a second run of the same adds its own name to the label."""
    found: dict[str, Look] = {}
    kinds = list(dict.fromkeys(row.part for row in runs))
    for row in runs:
        taken = any(one.label == row.part for name, one in found.items() if name != row.name)
        label = f"{row.part} ({row.name})" if taken else row.part
        found.setdefault(row.name, Look(label, colour(kinds.index(row.part))))
    return found


def facts_of(order: ReportOrder, runs: Sequence[RunRow]) -> list[tuple[str, str]]:
    """What pages on summaries say of the plan: (a name, its text)."""
    views = [row.learner.view for row in runs if row.learner is not None]
    return [
        ("scale", order.scale),
        ("backbone", order.backbone),
        ("products with its weights", order.precision),
        ("seeds", ", ".join(map(str, sorted({row.seed for row in order.runs})))),
        ("source / target tokens", ", ".join(sorted({f"{v.source_tokens} / {v.target_tokens}" for v in views}))),
    ]


def rounds_cell(results: Results, run: str, figures: Mapping[str, Figures], clients: Sequence[str]) -> Cell:
    """The best rounds of a run's clients, and how it ended: by the cap, or with this test loss after its last round.

    Args:
        clients: the loss is a mean over those of them that have figures.
    """
    rounds = sorted(n for client in figures for n in best_rounds(results.histories[run], client))
    if not rounds:
        return Cell("")
    span = str(rounds[0]) if rounds[0] == rounds[-1] else f"{rounds[0]}–{rounds[-1]}"
    last = mean_loss("last", figures, clients)
    ending = "ended by the cap on rounds" if results.capped(run) else "" if last is None else f"last round: {last:.3f}"
    return Cell(span, ending)


def mean_loss(name: str, figures: Mapping[str, Figures], clients: Sequence[str]) -> float | None:
    """The test loss of another model of a run, mean over clients; None where one of them lacks it."""
    own = [figures[client].other_losses for client in clients if client in figures]
    known = [losses[name] for losses in own if name in losses]
    return fmean(known) if len(known) == len(own) > 0 else None


def main_rows(results: Results, metrics: Sequence[Metric], looks: Mapping[str, Look]) -> list[Json]:
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
