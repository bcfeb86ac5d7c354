"""reports/report.html: one self-contained page, assembled from tables and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.clients.manifest import hash_order
from pipeline.corpora.qmsum import DOMAINS
from pipeline.corpora.sampled import is_sample
from pipeline.evaluation.paper_scores import OURS, Paper, main_effects
from pipeline.evaluation.rouge import AVERAGED
from pipeline.evaluation.scores import MEAN
from pipeline.evaluation.significance import DETECTABLE
from pipeline.evaluation.words import grouped
from pipeline.federated.history import History, best_rounds, has_converged
from pipeline.plan.orders import MainSpec
from pipeline.report import caveats
from pipeline.report.figures.parts_of_speech import share_text
from pipeline.report.naming import labels
from pipeline.report.page import MAIN_COMMAND, embedded, page
from pipeline.runs.results import Metrics

TEMPLATE = Path(__file__).parent / "templates" / "main_page.html.j2"
PAPER_SHARES = {"Academic": "86%", "Committee": "88%", "Product": "89%"}
PAPER_TABLES = {"bart-large": ("III", "BART-large"), "bart-base": ("IV", "BART-base"), "led-large": ("VI", "LED-large")}
"""Backbone -> (number, backbone) of the paper's table; beside one that the paper lacks stands BART-base."""
PAPER_METHODS = ("AdaSingle", "AdaCentralized", "AdaFedAvg", "AdaFedKD", "AdaFedSelectKD")


@dataclass(frozen=True)
class Column:
    """A column of the main table; `sign` is −1 where less is better."""

    metric: str
    title: str
    digits: int
    sign: int = 1
    ranked: bool = True


COLUMNS = (
    Column("rouge1", "R-1", 2),
    Column("rouge2", "R-2", 2),
    Column("rougeL", "R-L", 2),
    Column("average", "average", 2),
    Column("loss", "test loss", 3, sign=-1),
    Column("similarity", "similarity", 3),
    Column("length", "words", 1, ranked=False),
    Column("repetition", "repeated 4-grams, %", 1, sign=-1, ranked=False),
)


@dataclass(frozen=True)
class MainPage:
    """Everything the page shows; `selective` is the run that distils selectively, `tau` its τ in nats."""

    spec: MainSpec
    notes: Mapping[str, Any]
    encoded: Mapping[str, Any]
    target_limit: int
    metrics: Metrics
    histories: Mapping[str, History]
    significance: Sequence[Mapping[str, Any]]
    paper: Paper
    pos: Sequence[Mapping[str, Any]] = ()
    shares: Sequence[Mapping[str, Any]] = ()
    sensitivities: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    predictions: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    lens: Sequence[Mapping[str, Any]] = ()
    selective: str | None = None
    tau: float = math.nan


def render(data: MainPage, figures: Path) -> str:
    """The page; figures are read from a folder of SVG files and embedded."""
    spec = data.spec
    named = labels(spec.runs)
    seeds = list(dict.fromkeys(row.seed for row in spec.runs))
    paper_table = PAPER_TABLES.get(spec.backbone, PAPER_TABLES["bart-base"])
    clients = [client for client in next(iter(data.metrics.values())) if client != MEAN]
    return page(
        TEMPLATE,
        sample=is_sample(data.notes),
        facts=_facts(data),
        command=MAIN_COMMAND,
        truncation=caveats.of_truncation(data.encoded, data.target_limit),
        columns=COLUMNS,
        main=main_rows(data, named, clients),
        figure=lambda name, caption, *runs: embedded(
            figures / f"{name}.svg", _caption(caption, runs or list(data.metrics))
        ),
        bootstrap_samples=spec.bootstrap_samples,
        permutation_samples=spec.permutation_samples,
        paper_clients=DOMAINS,
        paper=_paper_rows(data.paper, paper_table[0]),
        paper_table=paper_table,
        same_backbone=data.spec.backbone in PAPER_TABLES,
        paper_effects=_paper_effects(data.paper),
        detectable=DETECTABLE,
        ours=named[data.selective] if data.selective else OURS,
        selective=data.selective,
        trained=list(data.histories),
        sending=[run for run, history in data.histories.items() if any(one.sent for one in history)],
        seed="" if len(seeds) == 1 else f", of seed {seeds[0]}",
        tau=f"{data.tau:g}",
        significance=[{**row, "against": named[row["against"]]} for row in data.significance if row["client"] == MEAN],
        pos_clients=list(dict.fromkeys(row["client"] for row in data.pos)),
        pos_shares=_pos_shares(data),
        lens=_lens(data),
        cases=_cases(data, named, clients),
        limits=_limits(data),
    )


def _caption(text: str, runs: Sequence[str]) -> str:
    return f"{text} Run{'s' if len(runs) > 1 else ''}: {', '.join(runs)}. To make it again: {MAIN_COMMAND}."


def _facts(data: MainPage) -> list[tuple[str, str]]:
    spec = data.spec
    source = data.notes["source"]
    cap = "all" if spec.validation_examples is None else f"at most {spec.validation_examples} a client"
    return [
        ("scale", spec.scale),
        ("data", f"QMSum, {source['source']}" + (f" @ {source['commit']}" if source["commit"] else "")),
        ("backbone", spec.backbone),
        ("span_end", spec.span_end),
        ("source / target tokens", f"{spec.source_tokens} / {spec.target_tokens}"),
        ("training examples", f"{100 * spec.train_fraction:g}% of every client"),
        ("validation examples", cap),
        ("seeds", ", ".join(str(seed) for seed in sorted({row.seed for row in spec.runs}))),
    ]


def main_rows(data: MainPage, named: Mapping[str, str], clients: Sequence[str]) -> list[dict[str, Any]]:
    """A group a client and the mean: every run's cells, ranked within the group."""
    groups = []
    for client in [*clients, MEAN]:
        ranks = {column.metric: _ranks(data, client, column) for column in COLUMNS}
        rows = [
            {
                "label": named[run],
                "cells": [_cell(figures[client], column, ranks[column.metric].get(run, "")) for column in COLUMNS],
                "note": "" if client == MEAN else _note(data.histories.get(run, ()), client, figures[client]),
            }
            for run, figures in data.metrics.items()
        ]
        examples = next(iter(data.metrics.values()))[client]["examples"]
        groups.append({"client": "Mean over clients" if client == MEAN else client, "examples": examples, "rows": rows})
    return groups


def _ranks(data: MainPage, client: str, column: Column) -> dict[str, str]:
    if not column.ranked:
        return {}
    shown = {run: round(column.sign * of[client][column.metric], column.digits) for run, of in data.metrics.items()}
    # What reads alike is marked alike; where all do, nobody is best.
    levels = sorted(set(shown.values()), reverse=True)
    places = dict(zip(levels, ("best", "second"), strict=False)) if len(levels) > 1 else {}
    return {run: places[value] for run, value in shown.items() if value in places}


def _cell(figures: Mapping[str, Any], column: Column, rank: str) -> dict[str, str]:
    value, low, high = (figures[f"{column.metric}{end}"] for end in ("", "_low", "_high"))
    dagger = {"best": "†", "second": "††"}.get(rank, "")
    digits = column.digits
    return {"text": f"{value:.{digits}f}{dagger}", "interval": f"{low:.{digits}f} … {high:.{digits}f}", "rank": rank}


def _note(history: History, client: str, figures: Mapping[str, Any]) -> str:
    """The best round, and how the last one compares: the same, or its own test loss."""
    best = best_rounds(history, client)
    if not best:
        return ""
    last = {one.seed: one.round for one in sorted(history, key=lambda one: one.round) if one.client == client}
    which = "/".join(str(number) for number in last.values())
    converged = has_converged(history, [client])
    ending = f"test loss of round {which}: {figures['last_loss']:.3f}" if converged else "not converged"
    return f"{', '.join(map(str, best))} ({ending})"


def _paper_rows(paper: Paper, number: str) -> list[dict[str, Any]]:
    rows = {(r["client"], r["method"]): r for r in paper if r["table"] == number}
    return [
        {
            "method": method,
            "cells": [rows[c, method][m] for c in DOMAINS for m in AVERAGED],
        }
        for method in PAPER_METHODS
    ]


def _paper_effects(paper: Paper) -> str:
    """The paper's own differences of average ROUGE, for scale."""
    gains = {
        other: " / ".join(f"{gain:.2f}" for gain in main_effects(paper, other)) for other in ("AdaFedAvg", "AdaFedKD")
    }
    return (
        f"the paper's own gains in average ROUGE are {gains['AdaFedAvg']} over AdaFedAvg and {gains['AdaFedKD']} over "
        "AdaFedKD (Tables III, IV, VI)."
    )


def _pos_shares(data: MainPage) -> list[dict[str, str]]:
    """A row a client: the share of its words that was distilled, and of nouns, names and main verbs among those."""
    found = {(row["client"], row["share"]): row for row in data.shares}
    return [
        {
            "client": client,
            "share": share_text(found.get((client, "distilled"))),
            "all_subwords": f"{100 * sensitivity['all_subwords']:.1f}%",
            "fraction": f"{100 * sensitivity['fraction']:.1f}%",
            "paper": PAPER_SHARES.get(client, "–"),
            "nouns_verbs": share_text(found.get((client, "content_given_distilled"))),
        }
        for client, sensitivity in data.sensitivities.items()
    ]


def _lens(data: MainPage) -> list[dict[str, Any]]:
    tau = data.tau
    queries = {row["id"]: row["query"] for rows in data.predictions.values() for row in rows}
    items = []
    for item in data.lens:
        entropies = item["entropy"]
        words = [
            {
                "text": "".join(item["pieces"][t] for t in tokens),
                "entropy": entropies[tokens[0]],
                "shade": (min(entropies[tokens[0]] / (2 * tau), 1.0) * 0.6 if tau else 0.6) if is_word else 0.0,
                "distilled": is_word and entropies[tokens[0]] < tau,
            }
            for tokens, is_word in grouped(item["pieces"])
        ]
        items.append({"client": item["client"], "query": queries.get(item["id"], item["id"]), "words": words})
    return items


def _cases(data: MainPage, named: Mapping[str, str], clients: Sequence[str]) -> list[dict[str, Any]]:
    """One test example a client, the first in a fixed shuffle."""
    by_run = {run: {row["id"]: row for row in rows} for run, rows in data.predictions.items()}
    first = next(iter(by_run.values()), {})
    cases = []
    for client in clients:
        ids = hash_order([i for i, row in first.items() if row["client"] == client])
        if ids:
            row = first[ids[0]]
            texts = [{"label": named[run], "text": rows[ids[0]]["prediction"]} for run, rows in by_run.items()]
            cases.append({"client": client, "query": row["query"], "reference": row["reference"], "rows": texts})
    return cases


def _limits(data: MainPage) -> list[str]:
    lines = [
        "Prompt positions are unadapted (causal backbones): adapters act where a target word is predicted, as in an "
        "encoder-decoder.",
        *caveats.of_meetings({data.spec.runs[0].setting: data.encoded}),
        *caveats.of_learning_rate(data.spec.runs),
        *caveats.of_backbone(data.spec.backbone, data.spec.runs),
    ]
    if len({row.seed for row in data.spec.runs}) < 3:
        lines.append(
            "Fewer than three seeds: intervals cover the choice of test meetings, not the randomness of training."
        )
    return lines
