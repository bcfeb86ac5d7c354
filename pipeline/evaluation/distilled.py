"""Which words of the training summaries a run distilled: Fig. 11 of the paper, and its 86/88/89%.

Counted over rounds 1 … a client's best: the paper's example, one summary of six words, two rounds, three of the twelve
occurrences distilled, is 3/(2·6) = 25%.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from pipeline.corpora.tagging import CONTENT, words_of
from pipeline.evaluation.intervals import Clusters, interval_of
from pipeline.evaluation.words import Tally, pos_rows, tally
from pipeline.workspace.record import Json

DETERMINERS_AND_PRONOUNS = ("DET", "PRON")


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
    return [tally([words_of(pieces(ids))], [part]) for ids, part in zip(tokens, parts, strict=True)]


def pos_tables(tallies: Mapping[str, Tally]) -> tuple[list[Json], dict[str, dict[str, float]]]:
    """Rows of pos_kd.csv for all clients, and each client's two sensitivities as shares of its words."""
    rows: list[Json] = []
    sensitivities: dict[str, dict[str, float]] = {}
    for client, counts in tallies.items():
        rows += pos_rows(client, counts)
        seen = max(1, sum(counts.seen.values()))
        sensitivities[client] = {"all_subwords": counts.all_subwords / seen, "fraction": counts.fraction / seen}
    return rows, sensitivities


def shares_of(run: str, client: str, meetings: Mapping[str, Tally], samples: int) -> list[Json]:
    """Rows of word_shares.csv: shares of a client's words in a run, with 95% intervals over its examples' meetings.

    `distilled`: of all words. `content`, `content_given_distilled`: nouns, names and main verbs among all words and
    among the distilled. `closed_given_not_distilled`: determiners and pronouns among the others.
    """
    counted = {
        "distilled": [(_taken(t), _seen(t)) for t in meetings.values()],
        "content": [(_seen(t, CONTENT), _seen(t)) for t in meetings.values()],
        "content_given_distilled": [(_taken(t, CONTENT), _taken(t)) for t in meetings.values()],
        "closed_given_not_distilled": [
            (_seen(t, DETERMINERS_AND_PRONOUNS) - _taken(t, DETERMINERS_AND_PRONOUNS), _seen(t) - _taken(t))
            for t in meetings.values()
        ],
    }
    rows = []
    for name, pairs in counted.items():
        known = [(meeting, top, bottom) for meeting, (top, bottom) in zip(meetings, pairs, strict=True) if bottom]
        if known:
            interval = interval_of({client: Clusters.of(*map(list, zip(*known, strict=True)))}, samples)
            figures = {end: interval.rounded(4).get(end) for end in ("value", "low", "high")}
            rows.append({"run": run, "client": client, "share": name, **figures})
    return rows


def _seen(counts: Tally, parts: Sequence[str] | None = None) -> int:
    return sum(n for pos, n in counts.seen.items() if parts is None or pos in parts)


def _taken(counts: Tally, parts: Sequence[str] | None = None) -> int:
    return sum(n for pos, n in counts.distilled.items() if parts is None or pos in parts)


def merge(tallies: Iterable[Tally]) -> Tally:
    """Tallies of several examples or seeds as one."""
    tallies = list(tallies)
    seen: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for counts in tallies:
        seen.update(counts.seen)
        taken.update(counts.distilled)
    return Tally(seen, taken, sum(t.all_subwords for t in tallies), sum(t.fraction for t in tallies))
