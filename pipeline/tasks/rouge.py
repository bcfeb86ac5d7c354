"""ROUGE F1 x 100, an example at a time, by `rouge-score-rs`: the numbers of `rouge_score`, many times faster.

`rougeL` uses the longest common subsequence of the complete texts, `rougeLsum` those of lines: they are not the same.

`latin` words, the paper's, are runs of a-z and 0-9 in lower case: `Größe` is `gr` and `e`. `unicode` words are those of
UAX #29, after NFKC and case folding, and single characters of scripts without spaces.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from rouge_score.rouge_scorer import RougeScorer as ReferenceScorer
from rouge_score_rs.rouge_scorer import RougeScorer
from rouge_score_rs.tokenizers import UnicodeTokenizer

from pipeline.errors import QuorumError

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
AVERAGED = ("rouge1", "rouge2", "rougeL")
"""The paper's "average" is the mean of these: it turns its Table III into its Table V."""
CHECKED, TOLERANCE = 16, 1e-9
"""The number of pairs of a call, at most, that `rouge_score` scores too, and the difference that is allowed."""
KATAKANA = re.compile("[\u30a1-\u30ff\u31f0-\u31ff]")
"""By Unicode's rules a run of these is a word; those of other scripts without spaces are single characters."""


def rouge_of(
    references: Sequence[str],
    predictions: Sequence[str],
    *,
    use_stemmer: bool,
    tokens: str = "latin",
    recall: bool = False,
) -> list[dict[str, float]]:
    """One dict an example: rouge1, rouge2, rougeL, rougeLsum and their average, F1 x 100, of latin or unicode tokens.

    `recall` adds rouge1_recall and so on. Raises QuorumError if `rouge_score` gives a pair another score.
    """
    how: dict[str, Any] = {"use_stemmer": use_stemmer}
    if tokens == "unicode":
        how = {"tokenizer": UnicodeTokenizer()}
        references, predictions = (list(map(_spaced, texts)) for texts in (references, predictions))
    scored = RougeScorer(list(ROUGE), **how).score_batch(references, predictions)
    reference = ReferenceScorer(list(ROUGE), **how)
    for place in range(0, len(scored), max(1, -(-len(scored) // CHECKED))):
        expected = reference.score(references[place], predictions[place])
        for name in ROUGE:
            ours, theirs = scored[place][name].fmeasure, expected[name].fmeasure
            if abs(ours - theirs) > TOLERANCE:
                wrong = f"{ours} by rouge-score-rs and {theirs} by rouge_score"
                raise QuorumError(f"{name} of pair {place + 1} is {wrong}; install the versions of requirements.lock")
    rows = [{name: 100.0 * scores[name].fmeasure for name in ROUGE} for scores in scored]
    if recall:
        recalls = [{f"{name}_recall": 100.0 * scores[name].recall for name in ROUGE} for scores in scored]
        rows = [row | own for row, own in zip(rows, recalls, strict=True)]
    return [row | {"average": sum(row[name] for name in AVERAGED) / len(AVERAGED)} for row in rows]


def words_of(text: str, tokens: str) -> list[str]:
    """The words that lengths count: those between spaces, or with `unicode` those that ROUGE compares."""
    words: list[str] = UnicodeTokenizer().tokenize(_spaced(text)) if tokens == "unicode" else text.split()
    return words


def _spaced(text: str) -> str:
    """A text with spaces around each character of Katakana; half-width ones are full-width after NFKC."""
    return KATAKANA.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))
