"""reports/paper.html: every table and figure of the paper, its claim on one side and our numbers on the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from markupsafe import Markup

from pipeline.corpora.sampled import is_sample
from pipeline.evaluation.paper_scores import average_of
from pipeline.evaluation.rouge import AVERAGED
from pipeline.evaluation.scores import MEAN
from pipeline.evaluation.significance import DETECTABLE
from pipeline.federated.history import best_rounds, has_converged
from pipeline.plan.orders import ReportSpec, TrainKnobs
from pipeline.report import caveats, data_tables
from pipeline.report.claim_rows import claim_row, counts
from pipeline.report.claims.claim import TOLERANCE, Judged
from pipeline.report.claims.section import NOT_THEIRS, Section
from pipeline.report.page import REPORT_COMMAND, embedded, page
from pipeline.runs.results import Metrics, Results, common_clients

TEMPLATE = Path(__file__).parent / "templates" / "paper_page.html.j2"


@dataclass(frozen=True)
class PaperPage:
    """Everything the page shows.

    `notes`: corpus -> what was noted when it was read. `indices`: setting -> the index of its examples, `limits` how
    many tokens it reads of a reference. `compared`: study -> the figures of its runs. `trainings`: a run at a seed ->
    its training's name; two may score two models of one, or be one under two names. `extra`: study -> ready pieces of
    the page, for what is no comparison. `full`: a claim's text -> the same claim on all of QMSum, and `full_scale` what
    that is called.
    """

    spec: ReportSpec
    results: Results
    sections: Sequence[Section]
    judged: Mapping[str, Sequence[Judged]]
    paper: Sequence[Mapping[str, str]]
    notes: Mapping[str, Mapping[str, Any]]
    statistics: Mapping[str, Sequence[Mapping[str, str]]]
    compared: Mapping[str, Metrics]
    indices: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, int]
    trainings: Mapping[str, str | None]
    extra: Mapping[str, Sequence[Markup]] = field(default_factory=dict)
    full: Mapping[str, Judged] = field(default_factory=dict)
    full_scale: str = ""


def render(data: PaperPage, figures: Path) -> str:
    """The page; figures are read from a folder of SVG files and embedded."""
    return page(
        TEMPLATE,
        samples=sorted(corpus for corpus, notes in data.notes.items() if is_sample(notes)),
        facts=_facts(data),
        sections=[_section(section, data, figures) for section in data.sections],
        claims=[
            claim_row(one, data.full, data.full_scale)
            for section in data.sections
            for one in data.judged.get(section.study, ())
        ],
        tally=_tally(data),
        full_tally=counts([one.verdict for one in data.full.values()]),
        full_scale=data.full_scale,
        corpora=data_tables.corpora(data.statistics, data.notes),
        span_end=data_tables.span_end(data.statistics),
        settings=data_tables.settings(data.indices, data.limits),
        limits=_limits(data),
        bootstrap_samples=data.spec.bootstrap_samples,
        tolerance=TOLERANCE,
        detectable=DETECTABLE,
        command=REPORT_COMMAND,
    )


def _facts(data: PaperPage) -> list[tuple[str, str]]:
    spec = data.spec
    made = [row for rows in data.results.rows.values() for row in rows]
    trained = [row.training for row in made if row.training is not None]
    return [
        ("scale", spec.scale),
        ("backbone", spec.backbone),
        ("runs", f"{len(made)}, of {len(set(data.trainings.values()) - {None})} trainings"),
        ("seeds", ", ".join(map(str, sorted({row.seed for row in spec.runs})))),
        ("source / target tokens", f"{spec.source_tokens} / {spec.target_tokens}"),
        ("rounds", ", ".join(str(n) for n in sorted({one.rounds for one in trained}))),
        ("learning rate", ", ".join(f"{rate:g}" for rate in sorted({one.learning_rate for one in trained}))),
        ("training examples", f"{100 * spec.train_fraction:g}% of a client's, or as each part says"),
    ]


def _section(section: Section, data: PaperPage, figures: Path) -> dict[str, Any]:
    compared = data.compared.get(section.study, {})
    runs = list(compared)
    common, clients = common_clients(compared)
    shown = figures / f"{section.study}.svg"
    behind = ", ".join(runs)
    caption = f"{section.title}: ours with 95% intervals. Runs: {behind}. To make it again: {REPORT_COMMAND}."
    return {
        "study": section.study,
        "source": section.source,
        "title": section.title,
        "says": section.says,
        "remark": section.remark,
        "paper": [paper_table(data.paper, table) for table in section.tables],
        "rows": [_row(name, compared[name], common, data.results) for name in runs],
        "trained_on": _trained_on(runs, data),
        "clients": clients,
        "mean": "mean" if common == clients else f"mean of {', '.join(common)}",
        "of_all": "" if common == clients else f"mean of all {len(clients)}",
        "figure": embedded(shown, caption) if runs else None,
        "claims": [claim_row(one, data.full, data.full_scale) for one in data.judged.get(section.study, ())],
        "extra": list(data.extra.get(section.study, ())),
    }


def _row(
    name: str, figures: Mapping[str, Mapping[str, Any]], common: Sequence[str], results: Results
) -> dict[str, Any]:
    """A run's average ROUGE by client with intervals, its summaries' surface, its test loss, its best rounds.

    Args:
        common: the clients that means are over.
    """
    history, mean = results.histories[name], figures[MEAN]
    rounds = [number for client in figures if client != MEAN for number in best_rounds(history, client)]
    note = "" if not rounds else f"{min(rounds)}–{max(rounds)}" if min(rounds) < max(rounds) else str(rounds[0])
    return {
        "kind": results.rows[name][0].kind,
        "name": name,
        "cells": {client: _cell(own) for client, own in figures.items()},
        "of_all": _cell(results.metrics[name][MEAN]),
        "words": "{length:.0f}".format(**mean) if "length" in mean else "–",
        "surface": "{similarity:.2f}, {repetition:.2f}".format(**mean) if "length" in mean else "",
        "loss": f"{mean['loss']:.3f}",
        "other_loss": _other_loss(figures, common),
        "rounds": note,
        "ending": _ending(figures, common) if has_converged(history, common) else "not converged",
    }


def _ending(figures: Mapping[str, Mapping[str, Any]], common: Sequence[str]) -> str:
    last = _mean_of("last_loss", figures, common)
    return "" if last is None else f"last round: {last:.3f}"


def _other_loss(figures: Mapping[str, Mapping[str, Any]], common: Sequence[str]) -> str:
    """The test loss of the model that the row is not about, where a method has two."""
    for name, text in (("server_loss", "server’s"), ("local_loss", "clients’")):
        other = _mean_of(name, figures, common)
        if other is not None:
            return f"{text} {other:.3f}"
    return ""


def _mean_of(name: str, figures: Mapping[str, Mapping[str, Any]], clients: Sequence[str]) -> float | None:
    own = [figures[client] for client in clients if client in figures]
    known = [of_client[name] for of_client in own if name in of_client]
    return fmean(known) if len(known) == len(own) > 0 else None


def _trained_on(runs: Sequence[str], data: PaperPage) -> str:
    """Training examples of each setting's clients, what an optimizer makes of them in a round, what was cut."""
    settings: dict[str, TrainKnobs] = {}
    for run in runs:
        row = data.results.rows[run][0]
        if row.training is not None:
            settings.setdefault(row.setting, row.training)
    lost = {name: caveats.of_truncation(data.indices[name], data.limits[name]) for name in settings}
    return " ".join(f"{name}: {_steps(data.indices[name], settings[name])}. {lost[name]}" for name in settings)


def _steps(index: Mapping[str, Any], training: TrainKnobs) -> str:
    held = {client: len(splits["train"]) for client, splits in index["clients"].items()}
    steps = {client: math.ceil(count / training.batch_size) * training.local_epochs for client, count in held.items()}
    total = sum(held.values())
    shares = {client: f"{100 * count / total:.0f}%" for client, count in held.items()}
    return ", ".join(f"{client} {held[client]} ({shares[client]}) in {steps[client]}" for client in held)


def _cell(figures: Mapping[str, Any]) -> dict[str, str]:
    if "average" not in figures:
        return {"value": "–", "interval": f"loss {figures['loss']:.3f}"}
    low, high = figures["average_low"], figures["average_high"]
    return {"value": f"{figures['average']:.2f}", "interval": f"{low:.1f} … {high:.1f}"}


def _tally(data: PaperPage) -> list[tuple[str, dict[str, str]]]:
    """How many of the paper's claims, and of ours, have each verdict, and would have it by their intervals alone."""
    judged = [one for found in data.judged.values() for one in found]
    ours = [one for one in judged if one.claim.source == NOT_THEIRS]
    theirs = [one for one in judged if one.claim.source != NOT_THEIRS]
    return [
        (
            f"{len(found)} claims {whose}",
            {
                "verdicts": counts([one.verdict for one in found]),
                "by_interval": counts([one.by_interval for one in found]),
            },
        )
        for whose, found in (("of the paper", theirs), ("besides", ours))
    ]


def paper_table(paper: Sequence[Mapping[str, str]], table: str) -> dict[str, Any]:
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


def _first_rounds(results: Results, trainings: Mapping[str, str | None]) -> list[str]:
    """How often what is evaluated of a run that distils has learned from one client only.

    Args:
        trainings: a run at a seed -> its training's name.
    """
    # One training under two names counts once; a server's adapter is an average from the first round on.
    local = [(name, rows) for name, rows in results.rows.items() if rows[0].evaluate == "local"]
    distinct = {trainings[rows[0].id]: name for name, rows in reversed(local)}
    histories = [results.histories[name] for name in distinct.values()]
    distilling = [history for history in histories if any(one.share_distilled is not None for one in history)]
    best = [one for history in distilling for one in history if one.best]
    first = sum(one.round == 1 for one in best)
    if not first:
        return []
    return [
        f"{first} of the {len(best)} adapters by which runs with distillation are judged are those of the first round, "
        "whose teacher has learned nothing yet: they owe nothing to the other clients. In its very first step teacher "
        "and student are the same model, so that a client with one step a round has distilled nothing by then."
    ]


def _limits(data: PaperPage) -> list[str]:
    """What a reader must know before believing a number."""
    spec = data.spec
    seeds = len({row.seed for row in spec.runs})
    return [
        f"{seeds} seed{'s' if seeds > 1 else ''}: intervals say how sure we are of these trainings on other meetings, "
        "not of other trainings. They are not adjusted for how many claims there are.",
        *caveats.of_meetings(data.indices),
        *caveats.of_learning_rate(spec.runs),
        "A block on repeated n-grams (no_repeat_ngram) hides most repetition where it is set, and summaries end at "
        "max_tokens: a method whose summaries run on is cut there.",
        f"Scale {spec.scale}, backbone {spec.backbone}; settings hold the examples that the table above says.",
        *_first_rounds(data.results, data.trainings),
        *caveats.of_backbone(spec.backbone, spec.runs),
        *_heuristics(data.results),
    ]


def _heuristics(results: Results) -> list[str]:
    if all(rows[0].method != "SCAFFOLD" for rows in results.rows.values()):
        return []
    return ["SCAFFOLD's corrected gradient goes through AdamW, which rescales it: a heuristic."]
