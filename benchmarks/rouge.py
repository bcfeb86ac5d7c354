"""ROUGE of many pairs: the pipeline's scorer against `rouge_score`."""

import random

from rouge_score.rouge_scorer import RougeScorer

from benchmarks.comparison import OURS, THEIRS, Row, interleaved
from pipeline.errors import QuorumError
from pipeline.tasks.rouge import ROUGE, rouge_of

PAIRS = 10_000


def rows(repeats: int) -> list[Row]:
    """Pairs of 60 to 120 made-up words, a third of them shared."""
    draw = random.Random(0)
    words = ["".join(draw.choice("abcdefghij") for _ in range(draw.randint(2, 8))) for _ in range(2000)]
    firsts = [draw.choices(words, k=draw.randint(60, 120)) for _ in range(PAIRS)]
    seconds_of = [own[: len(own) // 3] + draw.choices(words, k=draw.randint(60, 120) - len(own) // 3) for own in firsts]
    texts = [[" ".join(own) for own in side] for side in (firsts, seconds_of)]
    scorer = RougeScorer(list(ROUGE), use_stemmer=False)
    sides = {
        OURS: lambda: [[row[name] for name in ROUGE] for row in rouge_of(*texts, use_stemmer=False)],
        THEIRS: lambda: [[100 * s[name].fmeasure for name in ROUGE] for s in map(scorer.score, *texts)],
    }
    seconds, scores = interleaved(sides, repeats)
    pairs = zip(*scores.values(), strict=True)
    difference = max(abs(a - b) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True))
    if difference > 1e-9:
        raise QuorumError(f"ROUGE: the two sides disagree by {difference:.1e}")
    return [
        Row(
            f"ROUGE of {PAIRS:,} pairs",
            "`rouge_score`",
            ratio=seconds[THEIRS].median / seconds[OURS].median,
            promised=20.0,
            ours=seconds[OURS],
            theirs=seconds[THEIRS],
            details={"largest_difference": difference},
        )
    ]
