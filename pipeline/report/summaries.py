"""Texts on the page of examples: references as the teacher sees them, and one test example a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.corpora.hash_order import hash_order
from pipeline.evaluation.words import grouped
from pipeline.workspace.record import Json

Predictions = Mapping[str, Sequence[Json]]
"""Run -> its rows of predictions."""


def lens(items: Sequence[Json], tau: float, predictions: Predictions) -> list[Json]:
    """References with the teacher's entropy at every word.

    Args:
        items: `client`, `id`, `pieces` of tokens, and the `entropy` in nats at each.
        tau: in nats; a word is distilled where its first token's entropy is below.
    """
    queries = {row["id"]: row["query"] for rows in predictions.values() for row in rows}
    found = []
    for item in items:
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
        found.append({"client": item["client"], "query": queries.get(item["id"], item["id"]), "words": words})
    return found


def cases(predictions: Predictions, named: Mapping[str, str]) -> list[Json]:
    """One test example a client, the first in a fixed shuffle, with every run's summary.

    Args:
        named: run -> what tables call it.
    """
    by_run = {run: {row["id"]: row for row in rows} for run, rows in predictions.items()}
    first = next(iter(by_run.values()), {})
    found = []
    for client in dict.fromkeys(row["client"] for row in first.values()):
        identity = hash_order([i for i, row in first.items() if row["client"] == client])[0]
        row = first[identity]
        texts = [{"label": named[run], "text": rows[identity]["prediction"]} for run, rows in by_run.items()]
        found.append({"client": client, "query": row["query"], "reference": row["reference"], "rows": texts})
    return found
