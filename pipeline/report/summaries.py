"""Texts on pages: references as the teacher sees them, and test examples with the summaries of runs."""

from collections.abc import Mapping, Sequence

from pipeline.corpora.hash_order import hash_order
from pipeline.evaluation.scores import Scored
from pipeline.evaluation.words import grouped
from pipeline.report.figures.style import Look
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

Predictions = Mapping[str, Sequence[Json]]  # run -> its rows of predictions


def lens(items: Sequence[Json], tau: float, predictions: Predictions) -> list[Json]:
    """References with the teacher's entropy at every word.

    `items`: `client`, `id`, `pieces` of tokens, and the `entropy` in nats at each. `tau`: in nats; a word is distilled
    where its first token's entropy is below.
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


def cases(predictions: Predictions, looks: Mapping[str, Look]) -> list[Json]:
    """One test example a client, the first in a fixed shuffle, with every run's summary."""
    by_run = {run: {row["id"]: row for row in rows} for run, rows in predictions.items()}
    first = next(iter(by_run.values()), {})
    found = []
    for client in dict.fromkeys(row["client"] for row in first.values()):
        chosen = hash_order([i for i, row in first.items() if row["client"] == client])[0]
        texts = [(looks[run].label, rows[chosen]["prediction"]) for run, rows in by_run.items()]
        found.append(_case(client, first[chosen], texts))
    return found


def _case(client: str, row: Json, texts: Sequence[tuple[str, str]]) -> Json:
    return {"client": client, "query": row["query"], "texts": [("Reference", row["reference"]), *texts]}


def median_cases(scored: Mapping[str, Sequence[Scored]], predictions: Predictions, metric: Metric) -> list[Json]:
    """Table VIII by a rule: each client's test example with the median of ours − theirs in a metric.

    `scored`: ours and theirs -> the scores of its examples at one seed. `predictions`: of the same two.
    """
    ours, theirs = scored
    other = {row.id: row.values[metric.name] for row in scored[theirs]}
    gains = {row.id: row.values[metric.name] - other[row.id] for row in scored[ours]}
    mine, others = ({row["id"]: row for row in predictions[run]} for run in (ours, theirs))
    found = []
    for client in dict.fromkeys(row.client for row in scored[ours]):
        own = sorted((row.id for row in scored[ours] if row.client == client), key=lambda i: (gains[i], i))
        chosen = own[len(own) // 2]
        texts = [("AdaFedSelectKD", mine[chosen]["prediction"]), ("AdaFedAvg", others[chosen]["prediction"])]
        found.append(_case(client, mine[chosen], texts) | {"gain": gains[chosen]})
    return found
