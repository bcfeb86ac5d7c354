"""reports/report.html: the question, the answer, and the numbers behind it, on one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline.corpora.qmsum import DOMAINS
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import MEAN, Figures, by_client
from pipeline.federated.history import best_rounds
from pipeline.plan.orders import CommonKnobs
from pipeline.report.effects import answer_of, effect_row, sensitivity_rows
from pipeline.report.figures.parts_of_speech import share_text
from pipeline.report.limits import limits, random_weights, truncation
from pipeline.report.main_data import MainData
from pipeline.report.naming import labels
from pipeline.report.page import COMMAND, embedded, page, piece
from pipeline.report.paper import PaperScores
from pipeline.runs.results import Metrics, Results
from pipeline.tasks.rouge import AVERAGED
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

PAPER_SHARES = {"Academic": "86%", "Committee": "88%", "Product": "89%"}
PAPER_TABLES = {"bart-large": ("III", "BART-large"), "bart-base": ("IV", "BART-base"), "led-large": ("VI", "LED-large")}
"""Backbone -> (number, backbone) of the paper's table; for a backbone that the paper lacks, BART-base's."""
PAPER_METHODS = ("AdaSingle", "AdaCentralized", "AdaFedAvg", "AdaFedKD", "AdaFedSelectKD")


def render(data: MainData, figures: Path) -> str:
    """The page as HTML; figures are read from a folder of SVG files and embedded."""
    order, named = data.order, labels(data.order.runs)

    def figure(name: str, caption: str, runs: Sequence[str], **about: Any) -> Markup:
        """A saved figure with its caption."""
        return embedded(figures / f"{name}.svg", piece(caption, runs=list(runs), command=COMMAND, **about).striptags())

    return page(
        "main_page.html.j2",
        data=data,
        figure=figure,
        sample=data.source.get("source") == "sample",
        random_weights=random_weights(order.backbone),
        truncation=truncation(data.cut) if data.cut else "",
        facts=_facts(data),
        limits=limits(order.backbone, order.runs, {order.runs[0].setting: _meetings(data.results)}, data.results),
        **_of_effects(data),
        **_of_runs(data, named),
        **_of_paper(data),
        pos_clients=list(dict.fromkeys(row["client"] for row in data.pos)),
        pos_shares=_pos_shares(data),
    )


def _of_effects(data: MainData) -> Json:
    metrics = {one.name: one for one in data.metrics}
    return {
        "answer": answer_of(data.effects, metrics),
        "effects": piece("effects", rows=[effect_row(one, metrics[one.metric], data.seeds) for one in data.effects]),
        "forest": any(one.interval for one in data.effects),
        "sensitivities": sensitivity_rows(data.effects, data.sensitivities, metrics),
    }


def _of_runs(data: MainData, named: Mapping[str, str]) -> Json:
    histories = {name: rows for name, rows in data.results.histories.items() if rows}
    return {
        "summary": summary(data, named),
        "rows_are_of": rows_are_of(data.results),
        "tables": {"": data.results, **data.parts},
        "rows_of": lambda own: main_rows(data, own, named),
        "all_runs": list(data.results.metrics),
        "trained": list(histories),
        "sending": [run for run, history in histories.items() if any(one.bytes_moved for one in history)],
    }


def _of_paper(data: MainData) -> Json:
    table = PAPER_TABLES.get(data.order.backbone, PAPER_TABLES["bart-base"])
    return {
        "paper_clients": DOMAINS,
        "paper": _paper_rows(data.paper, table[0]) if data.paper else [],
        "paper_table": table,
        "same_backbone": data.order.backbone in PAPER_TABLES,
    }


def rows_are_of(results: Results) -> str:
    """At which seeds a table's rows were trained, and on how many meetings they are tested."""
    seeds = [str(row.seed) for row in next(iter(results.rows.values()))]
    named = f"seed {seeds[0]} alone" if len(seeds) == 1 else f"seeds {', '.join(seeds[:-1])} and {seeds[-1]}"
    return f"These rows are of {named}, tested on {sum(_meetings(results).values())} meetings."


def _meetings(results: Results) -> dict[str, int]:
    """Client -> on how many meetings it is tested, over all seeds."""
    rows = next(iter(results.scored.values()))
    return {client: len({row.meeting for row in own}) for client, own in by_client(rows).items()}


def summary(data: MainData, named: Mapping[str, str]) -> list[Json]:
    """Rows of the small table: every run's mean over clients."""
    results, rates = data.results, _rates(data.results)
    rows = []
    for run, figures in results.metrics.items():
        mean = figures[MEAN].metrics
        cells = [_interval(mean, metric) for metric in data.summarized]
        notes = [
            *(["ended by the cap on rounds"] if results.capped(run) else []),
            *([rates[run]] if run in rates else []),
        ]
        rows.append({"label": named[run], "cells": cells, "training": ", ".join(notes)})
    return rows


def _rates(results: Results) -> dict[str, str]:
    """Run -> its learning rate, where runs of the same part have different rates."""
    rates = {run: rows[0].training.learning_rate for run, rows in results.rows.items() if rows[0].training}
    by_part: dict[str, set[float]] = {}
    for run, rate in rates.items():
        by_part.setdefault(results.rows[run][0].part, set()).add(rate)
    return {
        run: f"learning rate {rate:g}" for run, rate in rates.items() if len(by_part[results.rows[run][0].part]) > 1
    }


def _interval(figures: Mapping[str, Interval], metric: Metric) -> dict[str, str]:
    if metric.name not in figures:
        return {"text": "–", "interval": ""}
    one, text = figures[metric.name], f"{figures[metric.name].value:.{metric.digits}f}"
    if metric.over is not None and metric.over in figures:
        text += f" ({one.value / figures[metric.over].value:.2f})"
    return {"text": text, "interval": one.span(metric.digits)}


def _facts(data: MainData) -> list[tuple[str, str]]:
    order, source = data.order, data.source
    cap = (
        "all"
        if order.knobs["validation_examples"] is None
        else f"at most {order.knobs['validation_examples']} a client"
    )
    trained = next((row.training for row in order.runs if row.name == data.selective), None)
    knobs = (
        {**trained.hyperparameters, **trained.model_dump(include={*CommonKnobs.model_fields, "learning_rate"})}
        if trained
        else {}
    )
    return [
        ("scale", order.scale),
        ("data", f"QMSum, {source['source']}" + (f" @ {source['commit']}" if source["commit"] else "")),
        ("backbone", order.backbone),
        ("products with its weights", order.precision),
        ("span_end", order.knobs.get("span_end", "")),
        ("source / target tokens", f"{_tokens(data)}"),
        ("training examples", f"{100 * order.knobs['train_fraction']:g}% of every client"),
        ("validation examples", cap),
        ("seeds", ", ".join(str(seed) for seed in sorted({row.seed for row in order.runs}))),
        *((f"{data.selective}: {name}", str(value)) for name, value in knobs.items()),
    ]


def _tokens(data: MainData) -> str:
    """The most tokens that are read and learned, of the first run that has a model."""
    view = next(row.learner.view for row in data.order.runs if row.learner is not None)
    return f"{view.source_tokens} / {view.target_tokens}"


def main_rows(data: MainData, results: Results, named: Mapping[str, str]) -> list[Json]:
    """A group a client and the mean: every run's cells, ranked within the group."""
    groups = []
    everything = results.metrics
    for client in [*data.clients, MEAN]:
        ranks = {metric.name: _ranks(everything, client, metric) for metric in data.metrics}
        rows = [
            {
                "label": named[run],
                "cells": [_cell(own[client], metric, ranks[metric.name].get(run, "")) for metric in data.metrics],
                "note": "" if client == MEAN else _note(results, run, client),
            }
            for run, own in everything.items()
        ]
        examples = next(iter(everything.values()))[client].examples
        groups.append({"client": "Mean over clients" if client == MEAN else client, "examples": examples, "rows": rows})
    return groups


def _ranks(metrics: Metrics, client: str, metric: Metric) -> dict[str, str]:
    if metric.better is None or not metric.ranked:
        return {}
    shown = {
        run: round(metric.sign * own[client].metrics[metric.name].value, metric.digits)
        for run, own in metrics.items()
        if metric.name in own[client].metrics
    }
    # Equal numbers as shown get equal marks; if all are equal, none is best.
    levels = sorted(set(shown.values()), reverse=True)
    places = dict(zip(levels, ("best", "second"), strict=False)) if len(levels) > 1 else {}
    return {run: places[value] for run, value in shown.items() if value in places}


def _cell(figures: Figures, metric: Metric, rank: str) -> dict[str, str]:
    cell = _interval(figures.metrics, metric)
    dagger = {"best": "†", "second": "††"}.get(rank, "")
    return cell | {"text": cell["text"] + dagger, "rank": rank}


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


def _paper_rows(paper: PaperScores, number: str) -> list[Json]:
    rows = {(r["client"], r["method"]): r for r in paper if r["table"] == number}
    return [
        {"method": method, "cells": [rows[c, method][m] for c in DOMAINS for m in AVERAGED]} for method in PAPER_METHODS
    ]


def _pos_shares(data: MainData) -> list[dict[str, str]]:
    """A row a client: the share of its words that was distilled, and of nouns, names and main verbs among those."""
    found = {(row["client"], row["share"]): row for row in data.shares}
    return [
        {
            "client": client,
            "share": share_text(found.get((client, "distilled"))),
            "all_subwords": share_text(found.get((client, "all_subwords"))),
            "fraction": share_text(found.get((client, "fraction"))),
            "paper": PAPER_SHARES.get(client, "–"),
            "nouns_verbs": share_text(found.get((client, "content_given_distilled"))),
        }
        for client in dict.fromkeys(row["client"] for row in data.shares)
    ]
