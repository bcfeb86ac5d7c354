"""Texts on the main page: reference summaries as the teacher sees them, and one test example a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.corpora.hash_order import hash_order
from pipeline.evaluation.words import grouped
from pipeline.report.main_data import MainData


def lens(data: MainData) -> list[dict[str, Any]]:
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


def cases(data: MainData, named: Mapping[str, str], clients: Sequence[str]) -> list[dict[str, Any]]:
    """One test example a client, the first in a fixed shuffle."""
    by_run = {run: {row["id"]: row for row in rows} for run, rows in data.predictions.items()}
    first = next(iter(by_run.values()), {})
    found = []
    for client in clients:
        ids = hash_order([i for i, row in first.items() if row["client"] == client])
        if ids:
            row = first[ids[0]]
            texts = [{"label": named[run], "text": rows[ids[0]]["prediction"]} for run, rows in by_run.items()]
            found.append({"client": client, "query": row["query"], "reference": row["reference"], "rows": texts})
    return found
