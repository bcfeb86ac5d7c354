"""ROUGE F1 x 100 by `rouge_score`, an example at a time.

`rougeL` takes the longest common subsequence of the whole texts, `rougeLsum` line by line: they are not the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from rouge_score.rouge_scorer import RougeScorer

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
AVERAGED = ("rouge1", "rouge2", "rougeL")
"""The paper's "average" is the mean of these: it turns its Table III into its Table V."""


def rouge_of(references: Sequence[str], predictions: Sequence[str], *, use_stemmer: bool) -> list[dict[str, float]]:
    """One dict an example: rouge1, rouge2, rougeL, rougeLsum and their average, F1 x 100."""
    scorer = RougeScorer(list(ROUGE), use_stemmer=use_stemmer)
    rows = []
    for reference, prediction in zip(references, predictions, strict=True):
        scores = scorer.score(reference, prediction)
        row = {name: 100.0 * scores[name].fmeasure for name in ROUGE}
        row["average"] = sum(row[name] for name in AVERAGED) / len(AVERAGED)
        rows.append(row)
    return rows
