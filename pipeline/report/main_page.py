"""reports/report.html: the question, the answer, and the numbers behind it, on one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from pipeline.corpora.qmsum import DOMAINS
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import MEAN, by_client
from pipeline.federated.history import best_rounds
from pipeline.plan.learner import CommonKnobs
from pipeline.report.effects import answer_of, effects_table, sensitivities_table
from pipeline.report.figures import bars, curves, intervals
from pipeline.report.limits import limits, random_weights, truncation
from pipeline.report.main_data import MainData
from pipeline.report.naming import colours, labels, tokens_of
from pipeline.report.page import Canvas, Cell, page, source_of, table
from pipeline.report.paper import PaperScores
from pipeline.report.pieces import parts_of_speech, share_text
from pipeline.runs.results import Metrics, Results
from pipeline.tasks.rouge import AVERAGED
from pipeline.tasks.task import Metric

PAPER_SHARES = {"Academic": "86%", "Committee": "88%", "Product": "89%"}
PAPER_TABLES = {"bart-large": ("III", "BART-large"), "bart-base": ("IV", "BART-base"), "led-large": ("VI", "LED-large")}
"""Backbone -> (number, backbone) of the paper's table; for a backbone that the paper lacks, BART-base's."""
PAPER_METHODS = ("AdaSingle", "AdaCentralized", "AdaFedAvg", "AdaFedKD", "AdaFedSelectKD")
SHARES = {
    "distilled": "words distilled",
    "all_subwords": "all subwords",
    "fraction": "subwords, mean",
    "paper": "the paper",
    "content_given_distilled": "nouns and verbs among the distilled",
}
"""Share in word_shares.csv, or the paper's -> its column."""


def draw(data: MainData, folder: Path) -> dict[str, Markup]:
    """Save every figure; name -> the HTML that embeds it."""
    named, coloured, results, canvas = labels(data.order.runs), colours(data.order.runs), data.results, Canvas(folder)
    by_seed, endpoints = list(results.by_seed.values()), tuple(data.compared.values())
    found = {}
    if any(effect.interval for effect in data.effects):
        forest = intervals.draw_forest(data.effects, {one.name: one for one in data.metrics})
        found["forest"] = canvas.place(forest, "forest", "forest", rings="runs", dashed="the paper")
    means = intervals.draw_means(results.metrics, by_seed, named, coloured, endpoints)
    found["main_scores"] = canvas.place(means, "main_scores", "main_scores", runs=list(results.metrics))
    trained = {run: history for run, history in results.histories.items() if history}
    histories = {named[run]: history for run, history in trained.items()}
    validation = curves.draw_validation(histories, data.clients, {named[run]: coloured[run] for run in trained})
    found["learning_curves"] = canvas.place(validation, "learning_curves", "learning_curves", runs=list(trained))
    if sending := [run for run, history in trained.items() if any(one.bytes_moved for one in history)]:
        totals = bars.draw_totals(histories, len(results.by_seed))
        found["traffic"] = canvas.place(totals, "traffic", "traffic", runs=sending)
    if data.selective:
        distilled = curves.draw_distilled(results.histories[data.selective], data.clients, data.tau)
        runs = [data.selective]
        found["share_distilled"] = canvas.place(distilled, "share_distilled", "share_distilled", runs=runs)
        found["parts_of_speech"] = Markup().join(parts_of_speech(canvas, data.pos, runs))
    return found


def render(data: MainData, figures: Mapping[str, Markup]) -> str:
    """The page as HTML; `figures` is the result of `draw`."""
    order, named, metrics = data.order, labels(data.order.runs), {one.name: one for one in data.metrics}
    number, model = PAPER_TABLES.get(order.backbone, PAPER_TABLES["bart-base"])
    return page(
        "main_page.html.j2",
        data=data,
        figures=figures,
        random_weights=random_weights(order.backbone),
        truncation=truncation(data.cut),
        facts=_facts(data),
        limits=limits(order.backbone, order.runs, {order.runs[0].setting: _meetings(data.results)}, data.results),
        answer=answer_of(data.effects, metrics),
        effects=effects_table(data.effects, lambda one: metrics[one.metric], data.seeds),
        sensitivities=sensitivities_table(data.effects, data.sensitivities, metrics),
        summary=summary(data, named),
        rows_are_of=rows_are_of(data.results),
        tables={title: main_table(data, own, named) for title, own in {"": data.results, **data.parts}.items()},
        paper=_paper_table(data.paper, number) if data.paper else "",
        paper_number=number,
        paper_model=model,
        same_backbone=order.backbone in PAPER_TABLES,
        shares=_shares_table(data) if data.pos else "",
    )


def rows_are_of(results: Results) -> str:
    """At which seeds a table's rows were trained, and on how many meetings they are tested."""
    seeds = [str(row.seed) for row in next(iter(results.rows.values()))]
    named = f"seed {seeds[0]} alone" if len(seeds) == 1 else f"seeds {', '.join(seeds[:-1])} and {seeds[-1]}"
    return f"These rows are of {named}, tested on {sum(_meetings(results).values())} meetings."


def _meetings(results: Results) -> dict[str, int]:
    """Client -> on how many meetings it is tested, over all seeds."""
    rows = next(iter(results.scored.values()))
    return {client: len({row.meeting for row in own}) for client, own in by_client(rows).items()}


def summary(data: MainData, named: Mapping[str, str]) -> Markup:
    """The small table: every run's mean over clients."""
    titles = [one.title for one in data.summarized]
    rates, rows = _rates(data.results), []
    for run, figures in data.results.metrics.items():
        notes = ["ended by the cap on rounds"] * data.results.capped(run) + ([rates[run]] if run in rates else [])
        cells = (_cell(figures[MEAN].metrics, metric) for metric in data.summarized)
        rows.append([named[run], *cells, Cell(", ".join(notes), kind="left wraps")])
    head = ["Method", *titles[:-1], f"{titles[-1]}, {data.summarized[-1].unit}", Cell("training", kind="left")]
    return table(head, rows, "summary")


def _rates(results: Results) -> dict[str, str]:
    """Run -> its learning rate, where runs of the same part have different rates."""
    rates = {run: rows[0].training.learning_rate for run, rows in results.rows.items() if rows[0].training}
    by_part: dict[str, set[float]] = {}
    for run, rate in rates.items():
        by_part.setdefault(results.rows[run][0].part, set()).add(rate)
    several = {part for part, own in by_part.items() if len(own) > 1}
    return {run: f"learning rate {rate:g}" for run, rate in rates.items() if results.rows[run][0].part in several}


def main_table(data: MainData, results: Results, named: Mapping[str, str]) -> Markup:
    """A group a client and the mean: every run's figures with intervals, ranked within the group."""
    rows: list[str | list[object]] = []
    for client in [*data.clients, MEAN]:
        ranks = {metric.name: _ranks(results.metrics, client, metric) for metric in data.metrics}
        examples = next(iter(results.metrics.values()))[client].examples
        heading = "Mean over clients" if client == MEAN else client
        rows.append(f"{heading} ({examples} test examples)" if examples else heading)
        for run, own in results.metrics.items():
            cells = (_cell(own[client].metrics, metric, ranks[metric.name].get(run, "")) for metric in data.metrics)
            note = "" if client == MEAN else _note(results, run, client)
            rows.append([named[run], *cells, Cell(note, kind="round")])
    return table(["Method", *(one.title for one in data.metrics), "best round"], rows)


def _ranks(metrics: Metrics, client: str, metric: Metric) -> dict[str, str]:
    """Run -> its mark, of the best and the second."""
    if metric.better is None or not metric.ranked:
        return {}
    shown = {
        run: round(metric.sign * own[client].metrics[metric.name].value, metric.digits)
        for run, own in metrics.items()
        if metric.name in own[client].metrics
    }
    # Equal numbers as shown get equal marks; if all are equal, none is best.
    levels = sorted(set(shown.values()), reverse=True)
    marks = dict(zip(levels, ("best", "second"), strict=False)) if len(levels) > 1 else {}
    return {run: marks[value] for run, value in shown.items() if value in marks}


def _cell(figures: Mapping[str, Interval], metric: Metric, rank: str = "") -> Cell:
    """A figure with its interval, its ratio to the references', and its rank."""
    if metric.name not in figures:
        return Cell("–")
    one, text = figures[metric.name], f"{figures[metric.name].value:.{metric.digits}f}"
    if metric.over is not None and metric.over in figures:
        text += f" ({one.value / figures[metric.over].value:.2f})"
    if rank:
        text = Markup('<span class="{}">{}{}</span>').format(rank, text, {"best": "†", "second": "††"}[rank])
    return Cell(text, one.span(metric.digits))


def _note(results: Results, run: str, client: str) -> str:
    """The best rounds, and the last rounds' test loss where they are others."""
    history = results.histories[run]
    best = best_rounds(history, client)
    if not best:
        return ""
    last = {one.seed: one.round for one in sorted(history, key=lambda one: one.round) if one.client == client}
    note = ""
    if best != list(last.values()):
        loss = results.metrics[run][client].other_losses["last"]
        note = f" (test loss of round {'/'.join(map(str, last.values()))}: {loss:.3f})"
    return ", ".join(map(str, best)) + note


def _facts(data: MainData) -> list[tuple[str, str]]:
    order = data.order
    most = order.knobs["validation_examples"]
    trained = next((row.training for row in order.runs if row.name == data.selective), None)
    knobs = {}
    if trained:
        knobs = trained.hyperparameters | trained.model_dump(include={*CommonKnobs.model_fields, "learning_rate"})
    return [
        ("scale", order.scale),
        ("data", "; ".join(source_of(name, source) for name, source in data.sources.items())),
        ("backbone", order.backbone),
        ("products with its weights", order.precision),
        ("span_end", order.knobs.get("span_end", "")),
        ("source / target tokens", next(tokens_of(row) for row in order.runs if row.learner)),
        ("training examples", f"{100 * order.knobs['train_fraction']:g}% of every client"),
        ("validation examples", "all" if most is None else f"at most {most} a client"),
        ("seeds", ", ".join(str(seed) for seed in sorted({row.seed for row in order.runs}))),
        *((f"{data.selective}: {name}", str(value)) for name, value in knobs.items()),
    ]


def _paper_table(paper: PaperScores, number: str) -> Markup:
    """The paper's table with the three scores of each of its clients."""
    rows = {(row["client"], row["method"]): row for row in paper if row["table"] == number}
    head = ["Method", *(title for client in DOMAINS for title in (f"{client} R-1", "R-2", "R-L"))]
    cells = [[m, *(rows[client, m][score] for client in DOMAINS for score in AVERAGED)] for m in PAPER_METHODS]
    return table(head, cells)


def _shares_table(data: MainData) -> Markup:
    """A row a client: the share of its words that was distilled, and of nouns, names and main verbs among those."""
    texts = {(row["client"], row["share"]): share_text(row) for row in data.shares}
    texts |= {(client, "paper"): share for client, share in PAPER_SHARES.items()}
    clients = dict.fromkeys(row["client"] for row in data.shares)
    return table(["Client", *SHARES.values()], [[c, *(texts.get((c, one), "–") for one in SHARES)] for c in clients])
