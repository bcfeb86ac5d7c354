"""The table of run A made otherwise, as `make audit` has it: records of a file, and rows of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from pipeline.evaluation.intervals import Interval, interval_of
from pipeline.evaluation.robustness import Runs
from pipeline.evaluation.scores import MEAN, Scored, clusters_of, gains, over_seeds
from pipeline.federated.methods import OURS
from pipeline.report.page import gain_text
from pipeline.report.pieces import figure_text
from pipeline.runs.audits import ANEW, BEAMS, FP32, KNOBS, ROUNDS, Audited
from pipeline.tasks.task import LOSS, Metric

AHEAD = {"ahead": "value", "ahead_low": "low", "ahead_high": "high"}
"""Column -> what of the interval of our gain stands in it."""
DIGITS = 4
SAMPLES = 2_000
"""Random signs behind the interval of a gain, which decides nothing."""
KEPT = "kept"
TITLES = {
    ANEW: "Nothing is changed on purpose. Where the audits were made, the same models wrote their summaries again, or "
    "the same runs were trained again. Machine, code and training may differ. What stands right of an arrow here "
    "stands left of one below",
    ROUNDS: "Each client keeps, of the rounds at most {around} from the one with the least loss, that whose "
    "{validated} validation summaries score best",
    BEAMS: "Summaries by a search with {beams} beams, not by a greedy one",
    FP32: "Trained, written and scored with all products in {precision}",
}
"""Audit -> what it changes."""


def tables_otherwise(audits: Mapping[str, Audited], kept: Runs) -> dict[str, Runs]:
    """Table -> run -> its test examples: KEPT, the table that is judged, and what each audit has of it."""
    found: dict[str, Runs] = {}
    for name in (name for name in TITLES if name in audits):
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in audits[name].rows:
            rows.setdefault(row["run"], []).append({k: v for k, v in row.items() if k != "run"})
        found[name] = {run: over_seeds([own]) for run, own in rows.items()}
    return {KEPT: kept, **found} if found else {}


def otherwise_records(tables: Mapping[str, Runs], ours: str | None, metric: str) -> list[dict[str, Any]]:
    """A row a table, run and client, the mean over clients last, with our run's gain over it.

    Args:
        ours: the run that is compared with every other.
        metric: by which.
    """
    audited = {run for name, table in tables.items() if name != KEPT for run in table}
    records = []
    for name, table in tables.items():
        own = table.get(ours or "")
        for run, rows in ((run, rows) for run, rows in table.items() if run in audited):
            gained = gains(own, rows, metric) if own and run != ours else None
            ahead = interval_of(gained, SAMPLES).rounded(DIGITS) if gained else {}
            for client, means in _means(rows).items():
                of_all = ahead if client == MEAN else {}
                records.append(
                    {"table": name, "run": run, "client": client, **means}
                    | {column: of_all.get(end) for column, end in AHEAD.items()}
                )
    return records


def _means(rows: Sequence[Scored]) -> dict[str, dict[str, float]]:
    """Client -> its mean of each metric; and the mean over clients."""
    clusters = {metric: clusters_of(rows, metric) for metric in rows[0].values}
    means = {client: {m: own[client].ratio() for m, own in clusters.items()} for client in clusters[LOSS.name]}
    means[MEAN] = {m: fmean(own[m] for own in means.values()) for m in clusters}
    return {client: {m: round(value, DIGITS) for m, value in own.items()} for client, own in means.items()}


def other_tables(
    records: Sequence[Mapping[str, Any]], audits: Mapping[str, Audited], metrics: Sequence[Metric]
) -> dict[str, list[list[str]]]:
    """What an audit changes -> a row a run, means over clients: as it is without the change, and as with it.

    Args:
        records: those of `otherwise_records`.
        metrics: all of the table.
    """
    means = {(one["table"], one["run"]): one for one in records if one["client"] == MEAN}
    found: dict[str, list[list[str]]] = {}
    for (name, run), now in means.items():
        before = means.get((KEPT if name == ANEW else ANEW, run))
        if name == KEPT or before is None:
            continue
        both = (before, now)
        moved = [
            f"{client} {old} → {new}" for client, (old, new) in audits[name].rounds.get(run, {}).items() if old != new
        ]
        found.setdefault(TITLES[name].format(**KNOBS[name]), []).append(
            [
                run,
                _both([_ahead(one, metrics[0].digits) for one in both]),
                *(_both([figure_text(one, metric) for one in both]) for metric in _shown(metrics)),
                ", ".join(moved),
            ]
        )
    return found


def written_by_round(rows: Sequence[Mapping[str, Any]], metric: str) -> dict[str, list[tuple[int, float]]]:
    """Run -> (round, a metric of its validation summaries, mean over clients).

    Args:
        rows: a row a run, client and round.
    """
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        found.setdefault(row["run"], {}).setdefault(row["round"], []).append(row[metric])
    return {run: [(number, fmean(values)) for number, values in sorted(own.items())] for run, own in found.items()}


def _both(texts: Sequence[str]) -> str:
    return " → ".join(texts) if any(texts) else ""


def other_columns(metrics: Sequence[Metric]) -> list[str]:
    """The heads of the columns: our gain, metrics, and rounds that are others."""
    return ["run", f"{OURS} ahead by", *(one.title for one in _shown(metrics)), "rounds"]


def _shown(metrics: Sequence[Metric]) -> list[Metric]:
    """The first, those that are read against the references', symptoms, and the loss."""
    return [metrics[0], *(one for one in metrics[1:] if one.over or not one.ranked or one.name == LOSS.name)]


def _ahead(one: Mapping[str, Any], digits: int) -> str:
    if one["ahead"] is None:
        return ""
    ends = (math.nan if one[end] is None else one[end] for end in ("ahead_low", "ahead_high"))
    return gain_text(Interval(one["ahead"], *ends), digits)
