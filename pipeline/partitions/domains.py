"""Setting `domains`: a client a domain, and the corpus's own splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.corpora.example import SPLITS, Example
from pipeline.partitions.manifest import Manifest, take_at_most, take_fraction


def partition(
    examples: Mapping[str, Example],
    clients: Sequence[str],
    *,
    train_fraction: float,
    validation_examples: int | None,
) -> Manifest:
    """Examples by domain; training scaled alike for every client, validation capped, test always whole."""
    manifest: Manifest = {}
    for client in clients:
        by_split = {
            split: [i for i, e in examples.items() if e.domain == client and e.split == split] for split in SPLITS
        }
        manifest[client] = {
            "train": take_fraction(by_split["train"], train_fraction),
            "val": take_at_most(by_split["val"], validation_examples),
            "test": by_split["test"],
        }
    return manifest
