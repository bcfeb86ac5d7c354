"""How much truncation cuts from sources and references, which every table reports."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from pipeline.clients.manifest import Manifest
from pipeline.runs.index import Index


@dataclass(frozen=True)
class Cut:
    """Truncation over all splits of one run's examples at a seed.

    `cut`: the number of `examples` that were truncated. `of_tokens`: the share of all transcripts' tokens read;
    `of_transcript`: the mean share of a transcript. `full`: the number of references that fill all `limit` tokens, end
    token included; a reference that was cut has exactly so many, like one that just fits.
    """

    examples: int
    cut: int
    of_tokens: float
    of_transcript: float
    full: int
    limit: int


def cut_of(index: Index, manifest: Manifest, limit: int) -> Cut:
    """Measure the truncation of a run's examples, of whose references `limit` tokens are read at most."""
    ids = [i for own in manifest.values() for split in own.values() for i in split]
    read = [index.read[i] for i in ids]
    total = sum(there for there, _ in read)
    shares = [kept / there for there, kept in read if there]
    return Cut(
        examples=len(ids),
        cut=sum(kept < there for there, kept in read),
        of_tokens=sum(kept for _, kept in read) / total if total else 1.0,
        of_transcript=fmean(shares) if shares else 1.0,
        full=sum(index.entries[i][0].tokens == limit for i in ids),
        limit=limit,
    )
