"""What truncation lost of sources and references: every table says how much of the meetings the model read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Cut:
    """Over all splits of one run's examples.

    `cut`: so many of the `examples` were read in part. `of_tokens`: the share that was read of all transcripts' tokens;
    `of_transcript`: of the average transcript's. `full`: so many references fill all `limit` tokens that are read of
    one, its end token included.
    """

    examples: int
    cut: int
    of_tokens: float
    of_transcript: float
    full: int
    limit: int


def cut_of(index: Mapping[str, Any], limit: int) -> Cut:
    """
    Args:
        index: the content of data/encoded/<run>.json.
        limit: what is read of a reference, in tokens.
    """
    entries = [e for splits in index["clients"].values() for split in splits.values() for e in split]
    total, kept = (sum(e[name] for e in entries) for name in ("transcript_tokens", "kept_tokens"))
    shares = [e["kept_tokens"] / e["transcript_tokens"] for e in entries if e["transcript_tokens"]]
    return Cut(
        examples=len(entries),
        cut=sum(e["kept_tokens"] < e["transcript_tokens"] for e in entries),
        of_tokens=kept / total if total else 1.0,
        of_transcript=fmean(shares) if shares else 1.0,
        # A reference that was cut has exactly `limit` tokens, as one that just fits has.
        full=sum(e["tokens"] == limit for e in entries),
        limit=limit,
    )


def meetings_tested(index: Mapping[str, Any]) -> dict[str, int]:
    """Client -> on how many meetings it is tested."""
    return {c: len({entry["meeting"] for entry in splits["test"]}) for c, splits in index["clients"].items()}
