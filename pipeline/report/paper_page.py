"""reports/paper.html: every table and figure of the paper, and under each our numbers with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from pipeline.clients.batches import batch_sizes
from pipeline.corpora.prepared import is_sample
from pipeline.evaluation.scores import MEAN, Figures
from pipeline.federated.history import best_rounds
from pipeline.plan.orders import ReportOrder, RunRow, TrainingKnobs
from pipeline.report import data_tables
from pipeline.report.limits import limits, random_weights
from pipeline.report.page import COMMAND, embedded, page, piece
from pipeline.report.pairs import Pair, ahead_by, reference_of
from pipeline.report.paper import PaperScores, Section, average_of
from pipeline.runs.result_files import Result
from pipeline.runs.results import Metrics, Results, common_clients
from pipeline.tasks.rouge import AVERAGED
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class PaperPage:
    """Everything the page shows.

    `notes`: data set -> its source and how it was read. `of_settings`: setting -> the result of one of its runs.
    `compared`: section -> the figures of its runs. `pairs`: section -> the difference of every two runs. `trainings`:
    run at a seed -> its training's name; runs can share one. `extra`: section -> pieces that are no comparison.
    """

    order: ReportOrder
    title: str
    results: Results
    sections: Sequence[Section]
    paper: PaperScores
    notes: Mapping[str, Json]
    statistics: Mapping[str, Sequence[Mapping[str, str]]]
    compared: Mapping[str, Metrics]
    pairs: Mapping[str, Sequence[Pair]]
    of_settings: Mapping[str, Result]
    trainings: Mapping[str, str | None]
    extra: Mapping[str, Sequence[Markup]] = field(default_factory=dict)


def render(data: PaperPage, figures: Path) -> str:
    """The page; figures are read from a folder of SVG files and embedded."""
    return page(
        "paper_page.html.j2",
        samples=sorted(corpus for corpus, notes in data.notes.items() if is_sample(notes)),
        random_weights=random_weights(data.order.backbone),
        facts=_facts(data),
        title=data.title,
        sections=[_section(section, data, figures) for section in data.sections],
        corpora=data_tables.corpora(data.statistics, data.notes),
        readings=data_tables.readings(data.statistics),
        settings=data_tables.settings(data.of_settings),
        limits=limits(
            data.order.backbone,
            data.order.runs,
            {setting: meetings_tested(result) for setting, result in data.of_settings.items()},
            data.results,
        ),
        command=COMMAND,
    )


def _facts(data: PaperPage) -> list[tuple[str, str]]:
    order = data.order
    runs = [row for rows in data.results.rows.values() for row in rows]
    trained = [row.training for row in runs if row.training is not None]
    return [
        ("scale", order.scale),
        ("backbone", order.backbone),
        ("products with its weights", order.precision),
        ("runs", f"{len(runs)}, of {len(set(data.trainings.values()) - {None})} trainings"),
        ("seeds", ", ".join(map(str, sorted({row.seed for row in order.runs})))),
        ("source / target tokens", ", ".join(sorted({_tokens(row) for row in runs if row.learner is not None}))),
        ("rounds", ", ".join(str(n) for n in sorted({one.rounds for one in trained}))),
        ("learning rate", ", ".join(f"{rate:g}" for rate in sorted({one.learning_rate for one in trained}))),
        ("training examples", f"{100 * order.knobs['train_fraction']:g}% of a client's, or as each part says"),
    ]


def _section(section: Section, data: PaperPage, figures: Path) -> Json:
    compared = data.compared.get(section.study, {})
    runs, metric = list(compared), load_task(next(iter(data.order.data.values()))).metrics[0]
    common, clients = common_clients(compared)
    reference = reference_of(runs, data.results)
    ahead = ahead_by(data.pairs.get(section.study, ()), reference)
    caption = piece("comparison", title=section.title, runs=runs, command=COMMAND).striptags()
    return {
        **section.model_dump(exclude={"tables"}),
        "paper": [paper_table(data.paper, table) for table in section.tables],
        "rows": [
            _row(name, compared[name], common, data.results, metric) | {"ahead": ahead.get(name, {})} for name in runs
        ],
        "reference": reference if ahead else None,
        "metric": metric,
        "trained_on": _trained_on(runs, data),
        "clients": clients,
        "mean": "mean" if common == clients else f"mean of {', '.join(common)}",
        "of_all": "" if common == clients else f"mean of all {len(clients)}",
        "figure": embedded(figures / f"{section.study}.svg", caption) if runs else None,
        "extra": list(data.extra.get(section.study, ())),
    }


def _row(name: str, figures: Mapping[str, Figures], common: Sequence[str], results: Results, metric: Metric) -> Json:
    """A run's scores by client with intervals, its summaries' surface, its test loss, its best rounds.

    Means are over the clients in `common`.
    """
    history, mean = results.histories[name], figures[MEAN].metrics
    rounds = [number for client in figures if client != MEAN for number in best_rounds(history, client)]
    values = {metric: one.value for metric, one in mean.items()}
    return {
        "part": results.rows[name][0].part,
        "name": name,
        "cells": {client: _cell(own, metric) for client, own in figures.items()},
        "of_all": _cell(results.metrics[name][MEAN], metric),
        "words": _words(values),
        "surface": "{similarity:.2f}, {repetition:.2f}".format(**values) if "length" in values else "",
        "loss": f"{values['loss']:.3f}" if "loss" in values else "–",
        "other_loss": _other_loss(figures, common),
        "rounds": _span(rounds),
        "ending": "ended by the cap on rounds" if results.capped(name) else _ending(figures, common),
    }


def _words(values: Mapping[str, float]) -> str:
    """The mean length in words, and over that of the references."""
    if "length" not in values:
        return "–"
    return f"{values['length']:.0f} ({values['length'] / values['reference_length']:.2f})"


def _span(rounds: Sequence[int]) -> str:
    if not rounds:
        return ""
    return f"{min(rounds)}–{max(rounds)}" if min(rounds) < max(rounds) else str(rounds[0])


def _cell(figures: Figures, metric: Metric) -> dict[str, str]:
    score = figures.metrics.get(metric.name)
    if score is None:
        return {"value": "–", "interval": f"loss {figures.metrics['loss'].value:.3f}"}
    ends = metric.digits - 1
    return {"value": f"{score.value:.{metric.digits}f}", "interval": score.span(ends)}


def _ending(figures: Mapping[str, Figures], common: Sequence[str]) -> str:
    last = _mean_of("last", figures, common)
    return "" if last is None else f"last round: {last:.3f}"


def _other_loss(figures: Mapping[str, Figures], common: Sequence[str]) -> str:
    """The test loss of the model that the row is not about, where a method has two."""
    for name, text in (("server", "server’s"), ("local", "clients’")):
        other = _mean_of(name, figures, common)
        if other is not None:
            return f"{text} {other:.3f}"
    return ""


def _mean_of(name: str, figures: Mapping[str, Figures], clients: Sequence[str]) -> float | None:
    own = [figures[client].other_losses for client in clients if client in figures]
    known = [losses[name] for losses in own if name in losses]
    return fmean(known) if len(known) == len(own) > 0 else None


def _trained_on(runs: Sequence[str], data: PaperPage) -> list[Json]:
    """Training examples and optimizer steps a round of each setting's clients, and what truncation lost."""
    settings: dict[str, TrainingKnobs] = {}
    for run in runs:
        row = data.results.rows[run][0]
        if row.training is not None:
            settings.setdefault(row.setting, row.training)
    return [
        {
            "name": name,
            "clients": _steps(data.of_settings[name], training),
            "truncation": data_tables.lost(data.of_settings[name]),
        }
        for name, training in settings.items()
    ]


def _tokens(row: RunRow) -> str:
    assert row.learner is not None
    return f"{row.learner.view.source_tokens} / {row.learner.view.target_tokens}"


def meetings_tested(result: Result) -> dict[str, int]:
    """Client -> on how many meetings it is tested."""
    groups: dict[str, set[str]] = {}
    for row in result["scores"]["examples"]:
        groups.setdefault(row["client"], set()).add(row["group"])
    return {client: len(own) for client, own in groups.items()}


def _steps(result: Result, training: TrainingKnobs) -> list[Json]:
    counts = {client: own["train"] for client, own in result["sizes"].items()}
    weights = {client: count * training.weights.get(client, 1.0) for client, count in counts.items()}
    total = sum(weights.values())
    return [
        {
            "name": client,
            "examples": count,
            "share": f"{100 * weights[client] / total:.0f}%",
            "steps": len(batch_sizes(count, training.batch_size)) * training.local_epochs,
        }
        for client, count in counts.items()
    ]


def paper_table(paper: PaperScores, table: str) -> Json:
    """One of the paper's tables: average ROUGE and its parts, a row a method, a column a client."""
    rows = [row for row in paper if row["table"] == table]
    clients = list(dict.fromkeys(row["client"] for row in rows))
    cells = {
        (row["method"], row["client"]): {
            "value": f"{average_of(row):.2f}",
            "interval": " / ".join(row[metric] for metric in AVERAGED if row[metric]),
        }
        for row in rows
    }
    methods = list(dict.fromkeys(row["method"] for row in rows))
    return {
        "table": table,
        "backbone": rows[0]["backbone"],
        "parts": any(row[metric] for row in rows for metric in AVERAGED),
        "clients": clients,
        "rows": [{"method": m, "cells": [cells.get((m, c)) for c in clients]} for m in methods],
    }
