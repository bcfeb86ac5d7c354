"""Which words were distilled, counted by part of speech.

The loss decides token by token; for counting, a word is distilled if its first subword is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from pipeline.corpora.tagging import Word, words_of


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
    seen: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    everything = 0
    fraction = 0.0
    for words, mask in zip(summaries, distilled, strict=True):
        for word in words:
            subwords = mask[:, list(word.tokens)]
            seen[word.pos] += mask.shape[0]
            taken[word.pos] += int(subwords[:, 0].sum())
            everything += int(subwords.all(1).sum())
            fraction += float(subwords.float().mean(1).sum())
    return Tally(seen, taken, everything, fraction)


def pos_rows(client: str, counts: Tally) -> list[dict[str, str | int | float]]:
    """One row a part of speech: base rate, both conditionals, lift; the row `all` last."""
    seen, taken = sum(counts.seen.values()), sum(counts.distilled.values())
    parts = sorted(counts.seen, key=lambda pos: (-counts.seen[pos], pos))
    counted = [(pos, counts.seen[pos], counts.distilled[pos]) for pos in parts]
    return [
        {
            "client": client,
            "pos": pos,
            "words": n,
            "distilled": k,
            "base_rate": _share(n, seen),
            "distilled_given_pos": _share(k, n),
            "pos_given_distilled": _share(k, taken),
            "pos_given_not_distilled": _share(n - k, seen - taken),
            "lift": _share(k * seen, n * taken),
        }
        for pos, n, k in [*counted, ("all", seen, taken)]
    ]


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
