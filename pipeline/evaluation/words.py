"""Which words were distilled, counted by part of speech.

The loss decides token by token; for counting, a word is distilled if its first subword is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from pipeline.corpora.tagging import Word, words_of

POS_COLUMNS = (
    "client",
    "pos",
    "words",
    "distilled",
    "base_rate",
    "distilled_given_pos",
    "pos_given_distilled",
    "pos_given_not_distilled",
    "lift",
)


def grouped(pieces: Sequence[str]) -> list[tuple[tuple[int, ...], bool]]:
    """All tokens that show something, in order and each once: (those of one word, or one alone; whether it is a word).

    Where words share a token, it is the first one's.
    """
    owner: dict[int, int] = {}
    for number, word in enumerate(words_of(pieces)):
        for token in word.tokens:
            owner.setdefault(token, number)
    groups: list[tuple[tuple[int, ...], bool]] = []
    last: int | None = None
    for token, piece in enumerate(pieces):
        mine = owner.get(token)
        if mine is not None and mine == last:
            groups[-1] = ((*groups[-1][0], token), True)
        elif piece:
            groups.append(((token,), mine is not None))
        last = mine
    return groups


@dataclass(frozen=True)
class Tally:
    """Counts of word occurrences over rounds: all, and those distilled, by part of speech.

    `all_subwords` and `fraction` are the sensitivities: words all of whose subwords are distilled, and the sum of the
    shares of subwords that are.
    """

    seen: dict[str, int]
    distilled: dict[str, int]
    all_subwords: int
    fraction: float


def tally(summaries: Sequence[Sequence[Word]], distilled: Sequence[Tensor]) -> Tally:
    """Count words over rounds.

    Args:
        summaries: the words of each training summary.
        distilled: for each summary a boolean (passes, tokens), one row a pass over the data.
    """
    seen: dict[str, int] = {}
    taken: dict[str, int] = {}
    everything = 0
    fraction = 0.0
    for words, mask in zip(summaries, distilled, strict=True):
        for word in words:
            subwords = mask[:, list(word.tokens)]
            seen[word.pos] = seen.get(word.pos, 0) + mask.shape[0]
            taken[word.pos] = taken.get(word.pos, 0) + int(subwords[:, 0].sum())
            everything += int(subwords.all(1).sum())
            fraction += float(subwords.float().mean(1).sum())
    return Tally(seen, taken, everything, fraction)


def pos_rows(client: str, counts: Tally) -> list[dict[str, str | int | float]]:
    """One row a part of speech: base rate, both conditionals, lift; the row `all` last."""
    seen, taken = sum(counts.seen.values()), sum(counts.distilled.values())
    share = taken / seen if seen else 0.0
    rows: list[dict[str, str | int | float]] = []
    for pos in sorted(counts.seen, key=lambda p: (-counts.seen[p], p)):
        n, k = counts.seen[pos], counts.distilled[pos]
        rows.append(
            {
                "client": client,
                "pos": pos,
                "words": n,
                "distilled": k,
                "base_rate": round(n / seen, 4),
                "distilled_given_pos": round(k / n, 4),
                "pos_given_distilled": round(k / taken, 4) if taken else 0.0,
                "pos_given_not_distilled": round((n - k) / (seen - taken), 4) if seen > taken else 0.0,
                "lift": round(k / n / share, 4) if share else 0.0,
            }
        )
    rows.append(
        {
            "client": client,
            "pos": "all",
            "words": seen,
            "distilled": taken,
            "base_rate": 1.0,
            "distilled_given_pos": round(share, 4),
            "pos_given_distilled": 1.0,
            "pos_given_not_distilled": 1.0,
            "lift": 1.0,
        }
    )
    return rows
