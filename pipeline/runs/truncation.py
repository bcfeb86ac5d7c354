"""How much truncation cuts from sources and references, which every table reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Cut:
    """Truncation over all splits of one run's examples.

    `cut`: the number of `examples` that were truncated. `of_tokens`: the share of all transcripts' tokens read;
    `of_transcript`: the mean share of a transcript. `full`: the number of references that fill all `limit` tokens, end
    token included.
    """

    examples: int
    cut: int
    of_tokens: float
    of_transcript: float
    full: int
    limit: int


def cut_of(index: Mapping[str, Any], limit: int) -> Cut:
    """Measure the truncation of one run's examples.

    Args:
        index: the content of data/encoded/<run>.json.
        limit: the most tokens that are read of a reference.
    """
    entries = [e for splits in index["clients"].values() for split in splits.values() for e in split]
    total, read = (sum(e[name] for e in entries) for name in ("transcript_tokens", "kept_tokens"))
    shares = [e["kept_tokens"] / e["transcript_tokens"] for e in entries if e["transcript_tokens"]]
    return Cut(
        examples=len(entries),
        cut=sum(e["kept_tokens"] < e["transcript_tokens"] for e in entries),
        of_tokens=read / total if total else 1.0,
        of_transcript=fmean(shares) if shares else 1.0,
        # A reference that was cut has exactly `limit` tokens, like one that just fits.
        full=sum(e["tokens"] == limit for e in entries),
        limit=limit,
    )


def meetings_tested(index: Mapping[str, Any]) -> dict[str, int]:
    """Count the meetings on which each client is tested."""
    return {c: len({entry["meeting"] for entry in splits["test"]}) for c, splits in index["clients"].items()}
