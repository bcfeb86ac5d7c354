"""Table VIII: one test example a client, picked by rule."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from pipeline.evaluation.scores import Scored
from pipeline.runs.results import Results


def median_cases(
    results: Results, texts: Mapping[str, Mapping[str, Mapping[str, str]]], ours: str, theirs: str
) -> list[Markup]:
    """Table VIII by rule: a client's test example at which ours − theirs, in average ROUGE, is the median.

    Args:
        texts: run -> example -> its row of predictions.
    """
    if ours not in results.scored or theirs not in results.scored:
        return []
    other = {row.id: row for row in results.scored[theirs]}
    seeds = len(results.rows.get(ours, ()))
    of_seeds = f", the mean of {seeds} seeds; the summaries are the first one's" if seeds > 1 else ""
    pieces = []
    for client in dict.fromkeys(row.client for row in results.scored[ours]):
        own = [row for row in results.scored[ours] if row.client == client]
        chosen = sorted(own, key=lambda row: (_gain(row, other), row.id))[len(own) // 2]
        rows = texts[ours][chosen.id], texts[theirs][chosen.id]
        pieces.append(
            Markup(
                '<div class="case"><strong>{}: {}</strong><dl><dt>Gold standard</dt><dd>{}</dd><dt>AdaFedSelectKD</dt>'
                "<dd>{}</dd><dt>AdaFedAvg</dt><dd>{}</dd></dl><small>difference {:+.2f}{}</small></div>"
            ).format(
                client,
                rows[0]["query"],
                rows[0]["reference"],
                rows[0]["prediction"] or "(empty)",
                rows[1]["prediction"] or "(empty)",
                _gain(chosen, other),
                of_seeds,
            )
        )
    return pieces


def _gain(row: Scored, other: Mapping[str, Scored]) -> float:
    return row.values["average"] - other[row.id].values["average"]
