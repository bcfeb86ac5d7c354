"""ROUGE F1 x 100, an example at a time, by `rouge-score-rs`: the numbers of `rouge_score`, many times faster.

`rougeL` uses the longest common subsequence of the complete texts, `rougeLsum` those of lines: they are not the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from rouge_score.rouge_scorer import RougeScorer as ReferenceScorer
from rouge_score_rs.rouge_scorer import RougeScorer

from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
AVERAGED = ("rouge1", "rouge2", "rougeL")
"""The paper's "average" is the mean of these: it turns its Table III into its Table V."""
CHECKED, TOLERANCE = 16, 1e-9
"""The number of pairs of a call, at most, that `rouge_score` scores too, and the difference that is allowed."""


def rouge_of(references: Sequence[str], predictions: Sequence[str], *, use_stemmer: bool) -> list[dict[str, float]]:
    """One dict an example: rouge1, rouge2, rougeL, rougeLsum and their average, F1 x 100.

    Raises:
        QuorumError: `rouge_score` gives a pair another score.
    """
    scored = RougeScorer(list(ROUGE), use_stemmer=use_stemmer).score_batch(references, predictions)
    reference = ReferenceScorer(list(ROUGE), use_stemmer=use_stemmer)
    for place in range(0, len(scored), max(1, -(-len(scored) // CHECKED))):
        _check(scored[place], reference.score(references[place], predictions[place]), place)
    rows = []
    for scores in scored:
        row = {name: 100.0 * scores[name].fmeasure for name in ROUGE}
        row["average"] = sum(row[name] for name in AVERAGED) / len(AVERAGED)
        rows.append(row)
    return rows


def _check(ours: Json, reference: Json, place: int) -> None:
    """Compare two libraries' scores of the pair with this number, counted from 0."""
    for name in ROUGE:
        if abs(ours[name].fmeasure - reference[name].fmeasure) > TOLERANCE:
            raise QuorumError(
                f"{name} of pair {place + 1} is {ours[name].fmeasure} by rouge-score-rs and "
                f"{reference[name].fmeasure} by rouge_score; install the versions of requirements.lock"
            )
