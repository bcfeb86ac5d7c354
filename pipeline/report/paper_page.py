"""The page on the paper: every table and figure of it, and under each our numbers with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from pipeline.clients.batches import batch_sizes
from pipeline.corpora.example import SPLITS, is_sample
from pipeline.evaluation.scores import MEAN, Figures
from pipeline.plan.learner import Training
from pipeline.plan.orders import ReportOrder
from pipeline.report.figures.intervals import draw_clients
from pipeline.report.limits import limits, truncation, warnings
from pipeline.report.naming import facts_of, looks, mean_loss, rounds_cell
from pipeline.report.page import Canvas, Cell, page, source_of, table
from pipeline.report.pairs import Pair, ahead_by, reference_of
from pipeline.report.paper import PaperScores, Section, paper_table
from pipeline.runs.result_files import Cut, Result
from pipeline.runs.results import Metrics, Results, common_clients
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace.record import Json

STATISTICS = ("pairs", "turns", "speakers", "words", "summary_words")
"""Columns of data_<corpus>.csv."""


@dataclass(frozen=True)
class PaperPage:
    """Everything the page shows.

    Attributes:
        metric: the score by which runs are compared.
        notes: data set -> its source and how it was read.
        statistics: data set -> rows of data_<corpus>.csv.
        compared: section -> the figures of its runs.
        pairs: section -> the difference of every two runs.
        of_settings: setting -> the result of one of its runs.
        trainings: run at a seed -> its training's name; runs can share one.
        extra: section -> pieces that are no comparison.
    """

    order: ReportOrder
    title: str
    metric: Metric
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


def render(data: PaperPage, folder: Path) -> str:
    """The page; the figures of its sections are saved in a folder."""
    meetings = {setting: meetings_tested(result) for setting, result in data.of_settings.items()}
    return page(
        "paper_page.html.j2",
        warnings=warnings(data.order.backbone, {corpus for corpus, notes in data.notes.items() if is_sample(notes)}),
        facts=_facts(data),
        title=data.title,
        sections=[_section(section, data, Canvas(folder)) for section in data.sections],
        corpora=corpora_table(data.statistics, data.notes),
        readings=readings(data.statistics),
        settings=settings_table(data.of_settings),
        limits=limits(data.order.backbone, data.order.runs, meetings, data.results),
    )


def _facts(data: PaperPage) -> list[tuple[str, str]]:
    runs = [row for rows in data.results.rows.values() for row in rows]
    trained = [row.training for row in runs if row.training is not None]
    return [
        *facts_of(data.order, runs),
        ("runs", f"{len(runs)}, of {len(set(data.trainings.values()) - {None})} trainings"),
        ("rounds", ", ".join(str(n) for n in sorted({one.rounds for one in trained}))),
        ("learning rate", ", ".join(f"{rate:g}" for rate in sorted({one.learning_rate for one in trained}))),
        ("training examples", f"{100 * data.order.knobs['train_fraction']:g}% of a client's, or as each part says"),
    ]


# --- sections ---------------------------------------------------------------------------------------------------------


def _section(section: Section, data: PaperPage, canvas: Canvas) -> Json:
    compared = data.compared.get(section.name, {})
    common, clients = common_clients(compared)
    reference = reference_of(list(compared), data.results)
    ahead = ahead_by(data.pairs.get(section.name, ()), reference)
    reference = reference if ahead else None
    mean = "mean" if common == clients else f"mean of {', '.join(common)}"
    figure = ""
    if compared:
        endpoints, by_seed = (data.metric, LOSS), list(data.results.by_seed.values())
        drawn = draw_clients(compared, by_seed, looks(data.order.runs), endpoints)
        figure = canvas.place(drawn, section.name, "comparison", title=section.title, runs=list(compared))
    head = [
        *(Cell("run", data.metric.title), *clients, mean),
        *([] if common == clients else [f"mean of all {len(clients)}"]),
        *([Cell(f"{reference} is ahead by", "in test loss, by")] if reference else []),
        Cell("words (over the references’)", Markup("similarity,<br>repetition, %")),
        *("test loss, mean", "best round"),
    ]
    rows = [section_row(run, own, compared, data.results, data.metric) for run, own in compared.items()]
    if reference:
        for row, run in zip(rows, compared, strict=True):
            row.insert(-3, _ahead(ahead.get(run, {}), data.metric))
    return {
        "section": section,
        "printed": [paper_table(data.paper, number) for number in section.tables],
        "table": table(head, rows) if rows else "",
        "ahead": f"{reference} is better, also in test loss; it is over test meetings that both runs have, in {mean}"
        if reference
        else "",
        "trained_on": _trained_on(list(compared), data),
        "figure": figure,
        "extra": list(data.extra.get(section.name, ())),
    }


def _ahead(texts: Mapping[str, str], metric: Metric) -> Cell:
    """What the reference gains over a run."""
    return Cell(texts.get(metric.name, "–" if texts else ""), texts.get("loss", ""))


def section_row(
    name: str, figures: Mapping[str, Figures], compared: Metrics, results: Results, metric: Metric
) -> list[Cell]:
    """A run's scores by client with intervals, its summaries' surface, its test loss, its best rounds.

    Means are over the clients that all compared runs have. A run with all clients also has the mean over these.
    """
    common, clients = common_clients(compared)
    values = {metric: one.value for metric, one in figures[MEAN].metrics.items()}
    cells = [_cell(figures.get(client), metric) for client in [*clients, MEAN]]
    if common != clients:
        cells.append(_cell(results.metrics[name][MEAN] if set(clients) < set(figures) else None, metric))
    return [
        Cell(results.rows[name][0].part, name),
        *cells,
        _words(values),
        Cell(f"{values['loss']:.3f}" if "loss" in values else "–", _other_loss(figures, common)),
        rounds_cell(results, name, figures, common),
    ]


def _cell(figures: Figures | None, metric: Metric) -> Cell:
    """A score with its interval, or the loss of a run without one."""
    if figures is None:
        return Cell("–")
    score = figures.metrics.get(metric.name)
    if score is None:
        return Cell("–", f"loss {figures.metrics['loss'].value:.3f}")
    return Cell(f"{score.value:.{metric.digits}f}", score.span(metric.digits - 1))


def _words(values: Mapping[str, float]) -> Cell:
    """The mean length in words, and over that of the references; similarity and repetition."""
    if "length" not in values:
        return Cell("–")
    return Cell(
        f"{values['length']:.0f} ({values['length'] / values['reference_length']:.2f})",
        f"{values['similarity']:.2f}, {values['repetition']:.2f}",
    )


def _other_loss(figures: Mapping[str, Figures], common: Sequence[str]) -> str:
    """The test loss of the model that the row is not about, where a method has two."""
    for name, text in (("server", "server’s"), ("local", "clients’")):
        other = mean_loss(name, figures, common)
        if other is not None:
            return f"{text} {other:.3f}"
    return ""


def _trained_on(runs: Sequence[str], data: PaperPage) -> list[str]:
    """A sentence a setting: its clients' training examples and optimizer steps a round, and what truncation lost."""
    settings: dict[str, Training] = {}
    for row in (data.results.rows[run][0] for run in runs):
        if row.training is not None:
            settings.setdefault(row.setting, row.training)
    return [
        f"Setting {name} trains on {steps_of(data.of_settings[name], training)}. {_lost(data.of_settings[name])}"
        for name, training in settings.items()
    ]


def steps_of(result: Result, training: Training) -> str:
    """Each client's training examples, its weight, and its optimizer steps a round."""
    counts = {client: own["train"] for client, own in result["sizes"].items()}
    weights = {client: count * training.weights.get(client, 1.0) for client, count in counts.items()}
    steps = {c: len(batch_sizes(count, training.batch_size)) * training.local_epochs for c, count in counts.items()}
    shares = {client: f"{100 * weight / sum(weights.values()):.0f}%" for client, weight in weights.items()}
    return ", ".join(
        f"{count} examples of {client} ({shares[client]} of all, {steps[client]} optimizer steps a round)"
        for client, count in counts.items()
    )


def meetings_tested(result: Result) -> dict[str, int]:
    """Client -> on how many meetings it is tested."""
    groups: dict[str, set[str]] = {}
    for row in result["scores"]["examples"]:
        groups.setdefault(row["client"], set()).add(row["group"])
    return {client: len(own) for client, own in groups.items()}


# --- data -------------------------------------------------------------------------------------------------------------


def corpora_table(statistics: Mapping[str, Sequence[Mapping[str, str]]], notes: Mapping[str, Json]) -> Markup:
    """A row a domain and split: its source, its statistics as it was read here, and in small print the paper's."""
    rows = []
    for corpus, own in statistics.items():
        reading = f"{notes[corpus]['span_end']}_" if notes[corpus].get("span_end") else ""
        for row in own:
            cells = (Cell(row[f"{reading}{name}"], row.get(f"paper_{name}", "")) for name in STATISTICS)
            where = (Cell(row[column], kind="left") for column in ("domain", "split"))
            rows.append([source_of(corpus, notes[corpus]["source"]), *where, *cells, row[f"{reading}without_turns"]])
    left = (Cell("domain", kind="left"), Cell("split", kind="left"))
    return table(["corpus", *left, *STATISTICS[:-1], "words of summary", "examples without turns"], rows)


def readings(statistics: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[str, int] | None:
    """Reading of a span's end -> the number of rows whose turns are those of the paper's Table II; `rows`: of all."""
    rows = [row for row in statistics.get("qmsum", ()) if row["paper_turns"]]
    same = {
        reading: sum(abs(float(row[f"{reading}_turns"]) - float(row["paper_turns"])) < 0.01 for row in rows)
        for reading in ("inclusive", "exclusive")
    }
    return same | {"rows": len(rows)} if rows else None


def settings_table(results: Mapping[str, Result]) -> Markup:
    """A row a setting: the number of examples of each client, and what truncation lost.

    Args:
        results: setting -> the result of one of its runs.
    """
    rows = []
    for name, result in results.items():
        sizes = [f"{client} {'/'.join(str(own[s]) for s in SPLITS)}" for client, own in result["sizes"].items()]
        rows.append([name, Cell(", ".join(sizes), kind="text"), Cell(_lost(result), kind="text")])
    left = (Cell("examples a client, train/val/test", kind="left"), Cell("truncation", kind="left"))
    return table(["setting", *left], rows)


def _lost(result: Result) -> Markup:
    return truncation(Cut(**result["cut"]) if result["cut"] else None)
