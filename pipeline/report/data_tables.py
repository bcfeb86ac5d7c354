"""Tables of data on the page on the paper: corpora with the numbers of Table II, and examples of each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pipeline.corpora.example import SPLITS
from pipeline.report.limits import truncation
from pipeline.runs.result_files import Result
from pipeline.runs.truncation import Cut
from pipeline.workspace.record import Json

STATISTICS = ("pairs", "turns", "speakers", "words", "summary_words")

Statistics = Mapping[str, Sequence[Mapping[str, str]]]
"""Corpus -> rows of data_<corpus>.csv."""


def corpora(statistics: Statistics, notes: Mapping[str, Json]) -> list[Json]:
    """A row a domain and split: its source, its statistics as it was read here, and the paper's.

    Args:
        notes: corpus -> its source and how it was read.
    """
    rows = []
    for corpus, table in statistics.items():
        source = notes[corpus]["source"]
        where = f"{corpus}, {source['source']}" + (f" @ {source['commit']}" if source["commit"] else "")
        reading = notes[corpus].get("span_end")
        kind = f"{reading}_" if reading else ""
        rows += [
            {
                "corpus": where,
                "domain": row["domain"],
                "split": row["split"],
                "cells": [(row[f"{kind}{c}"], row.get(f"paper_{c}", "")) for c in STATISTICS],
                "without_turns": row[f"{kind}without_turns"],
            }
            for row in table
        ]
    return rows


def readings(statistics: Statistics) -> dict[str, int] | None:
    """Reading of a span's end -> the number of rows whose turns are those of the paper's Table II; `rows`: of all."""
    rows = [row for row in statistics.get("qmsum", ()) if row["paper_turns"]]
    if not rows:
        return None
    same = {
        reading: sum(abs(float(row[f"{reading}_turns"]) - float(row["paper_turns"])) < 0.01 for row in rows)
        for reading in ("inclusive", "exclusive")
    }
    return same | {"rows": len(rows)}


def settings(results: Mapping[str, Result]) -> list[Json]:
    """A row a setting: the number of examples of each client, and what truncation lost.

    Args:
        results: setting -> the result of one of its runs.
    """
    rows = []
    for name, result in results.items():
        sizes = [f"{client} {'/'.join(str(own[s]) for s in SPLITS)}" for client, own in result["sizes"].items()]
        rows.append({"name": name, "clients": ", ".join(sizes), "truncation": lost(result)})
    return rows


def lost(result: Result) -> Markup:
    """What truncation lost, where a result has it."""
    return truncation(Cut(**result["cut"])) if result["cut"] else Markup("")
