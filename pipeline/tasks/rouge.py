"""ROUGE F1 x 100, an example at a time, by `rouge-score-rs`: the numbers of `rouge_score`, many times faster.

`rougeL` uses the longest common subsequence of the complete texts, `rougeLsum` those of lines: they are not the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from rouge_score.rouge_scorer import RougeScorer as ReferenceScorer
from rouge_score_rs.rouge_scorer import RougeScorer

from pipeline.errors import QuorumError

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
AVERAGED = ("rouge1", "rouge2", "rougeL")
"""The paper's "average" is the mean of these: it turns its Table III into its Table V."""
CHECKED, TOLERANCE = 16, 1e-9
"""The number of pairs of a call, at most, that `rouge_score` scores too, and the difference that is allowed."""


def rouge_of(
    references: Sequence[str], predictions: Sequence[str], *, use_stemmer: bool, recall: bool = False
) -> list[dict[str, float]]:
    """One dict an example: rouge1, rouge2, rougeL, rougeLsum and their average, F1 x 100.

    `recall` adds rouge1_recall and so on. Raises QuorumError if `rouge_score` gives a pair another score.
    """
    scored = RougeScorer(list(ROUGE), use_stemmer=use_stemmer).score_batch(references, predictions)
    reference = ReferenceScorer(list(ROUGE), use_stemmer=use_stemmer)
    for place in range(0, len(scored), max(1, -(-len(scored) // CHECKED))):
        expected = reference.score(references[place], predictions[place])
        for name in ROUGE:
            ours, theirs = scored[place][name].fmeasure, expected[name].fmeasure
            if abs(ours - theirs) > TOLERANCE:
                raise QuorumError(
                    f"{name} of pair {place + 1} is {ours} by rouge-score-rs and {theirs} by rouge_score; install the "
                    "versions of requirements.lock"
                )
    rows = [{name: 100.0 * scores[name].fmeasure for name in ROUGE} for scores in scored]
    if recall:
        rows = [
            row | {f"{name}_recall": 100.0 * scores[name].recall for name in ROUGE}
            for row, scores in zip(rows, scored, strict=True)
        ]
    return [row | {"average": sum(row[name] for name in AVERAGED) / len(AVERAGED)} for row in rows]
