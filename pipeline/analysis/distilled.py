"""Which words of the training summaries a run distilled: Fig. 11 of the paper, and its 86/88/89%.

Counted over rounds 1 … a client's best: the paper's example, one summary of six words, two rounds, three of the twelve
occurrences distilled, is 3/(2·6) = 25%.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pipeline.analysis.words import Tally, pos_rows, tally, words_of
from pipeline.federated.bits import unpack_bits


def client_tally(
    packed: Tensor, tokens: Sequence[Sequence[int]], pieces: Callable[[Sequence[int]], list[str]], passes: int
) -> Tally:
    """Count one client's words.

    Args:
        packed: the client's distilled bits, (all passes over the data, ⌈target tokens / 8⌉).
        tokens: the target token ids of its training examples, in their order.
        pieces: token ids -> their surface texts.
        passes: how many passes count: those of rounds 1 … best.
    """
    lengths = [len(ids) for ids in tokens]
    bits = unpack_bits(packed, sum(lengths))[:passes]
    return tally([words_of(pieces(ids)) for ids in tokens], torch.split(bits, lengths, dim=1))


def summarize(
    tallies: Mapping[str, Tally],
) -> tuple[list[dict[str, Any]], dict[str, dict[str, float]]]:
    """Rows of pos_kd.csv for all clients, and each client's two sensitivities as shares of its words."""
    rows: list[dict[str, Any]] = []
    sensitivities: dict[str, dict[str, float]] = {}
    for client, counts in tallies.items():
        rows += pos_rows(client, counts)
        seen = max(1, sum(counts.seen.values()))
        sensitivities[client] = {"all_subwords": counts.all_subwords / seen, "fraction": counts.fraction / seen}
    return rows, sensitivities


def merge(tallies: Sequence[Tally]) -> Tally:
    """Tallies of several seeds as one."""
    seen: dict[str, int] = {}
    taken: dict[str, int] = {}
    for counts in tallies:
        for pos, n in counts.seen.items():
            seen[pos] = seen.get(pos, 0) + n
            taken[pos] = taken.get(pos, 0) + counts.distilled.get(pos, 0)
    return Tally(seen, taken, sum(t.all_subwords for t in tallies), sum(t.fraction for t in tallies))
