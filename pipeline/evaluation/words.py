"""Which words of the training summaries a run distilled, by part of speech: Fig. 11 of the paper, and its 86/88/89%.

The loss decides token by token; for counting, a word is distilled if its first subword is. Counted over rounds 1 … a
client's best: the paper's example, one summary of six words, two rounds, three of the twelve occurrences distilled, is
3/(2·6) = 25%.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.corpora.tagging import CONTENT, Word, words_of
from pipeline.evaluation.intervals import Clusters, interval_of
from pipeline.workspace.record import Json

DETERMINERS_AND_PRONOUNS = ("DET", "PRON")


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

    seen: Mapping[str, int]
    distilled: Mapping[str, int]
    all_subwords: int
    fraction: float

    def words(self, parts: Collection[str] | None = None) -> tuple[int, int]:
        """Numbers of words, and of distilled ones, of these parts of speech; None: of all."""
        found = [pos for pos in self.seen if parts is None or pos in parts]
        return sum(self.seen[pos] for pos in found), sum(self.distilled[pos] for pos in found)


def tally(words: Sequence[Word], distilled: Tensor) -> Tally:
    """Count the words of a summary, of which `distilled` are boolean (passes over the data, tokens)."""
    seen, taken, everything, fraction = Counter[str](), Counter[str](), 0, 0.0
    for word in words:
        subwords = distilled[:, list(word.tokens)]
        seen[word.pos] += len(distilled)
        taken[word.pos] += int(subwords[:, 0].sum())
        everything += int(subwords.all(1).sum())
        fraction += float(subwords.float().mean(1).sum())
    return Tally(seen, taken, everything, fraction)


def example_tallies(
    rows: Tensor, tokens: Sequence[Sequence[int]], pieces: Callable[[Sequence[int]], list[str]]
) -> list[Tally]:
    """Count one client's words, an example at a time.

    Args:
        rows: which target tokens were distilled, boolean (passes over the data, tokens).
        tokens: the target token ids of its training examples, in their order.
        pieces: token ids -> their surface texts.
    """
    parts = torch.split(rows, [len(ids) for ids in tokens], dim=1)
    return [tally(words_of(pieces(ids)), part) for ids, part in zip(tokens, parts, strict=True)]


def merge(tallies: Iterable[Tally]) -> Tally:
    """Tallies of several examples or seeds as one."""
    tallies, seen, taken = list(tallies), Counter[str](), Counter[str]()
    for counts in tallies:
        seen.update(counts.seen)
        taken.update(counts.distilled)
    return Tally(seen, taken, sum(t.all_subwords for t in tallies), sum(t.fraction for t in tallies))


def pos_tables(tallies: Mapping[str, Tally]) -> tuple[list[Json], dict[str, dict[str, float]]]:
    """Rows of pos_kd.csv for all clients, and each client's two sensitivities as shares of its words."""
    rows, sensitivities = [], {}
    for client, counts in tallies.items():
        rows += pos_rows(client, counts)
        words = max(1, counts.words()[0])
        sensitivities[client] = {"all_subwords": counts.all_subwords / words, "fraction": counts.fraction / words}
    return rows, sensitivities


def pos_rows(client: str, counts: Tally) -> list[Json]:
    """One row a part of speech: base rate, both conditionals, lift; the row `all` last."""
    seen, taken = counts.words()
    parts = sorted(counts.seen, key=lambda pos: (-counts.seen[pos], pos))
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
        for pos, (n, k) in [*((pos, counts.words([pos])) for pos in parts), ("all", (seen, taken))]
    ]


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


SHARES: dict[str, Callable[[Tally], tuple[int, int]]] = {
    "distilled": lambda counts: (counts.words()[1], counts.words()[0]),
    "content": lambda counts: (counts.words(CONTENT)[0], counts.words()[0]),
    "content_given_distilled": lambda counts: (counts.words(CONTENT)[1], counts.words()[1]),
    "closed_given_not_distilled": lambda counts: (_left(counts.words(DETERMINERS_AND_PRONOUNS)), _left(counts.words())),
}
"""Shares of words as (part, whole): the distilled of all; nouns, names and main verbs of all, and of the distilled;
determiners and pronouns of the others."""


def _left(words: tuple[int, int]) -> int:
    return words[0] - words[1]


def shares_of(run: str, client: str, meetings: Mapping[str, Tally], samples: int) -> list[Json]:
    """Rows of word_shares.csv: shares of a client's words in a run, with 95% intervals over its examples' meetings."""
    rows = []
    for share, counted in SHARES.items():
        known = [(name, *counted(own)) for name, own in meetings.items() if counted(own)[1]]
        if known:
            names, parts, wholes = zip(*known, strict=True)
            ends = interval_of({client: Clusters.of(names, parts, wholes)}, samples).rounded(4)
            row: Json = {"run": run, "client": client, "share": share}
            rows.append(row | {end: ends.get(end) for end in ("value", "low", "high")})
    return rows
