"""How a client's examples fall into batches, and how few optimizer steps a round may have."""

from collections.abc import Iterator, Sequence

from pipeline.clients.manifest import Manifest

SMALLEST_BATCH = 4
LEAST_STEPS = 5
"""Of every client in every round, wherever a number is reported. A round begins with a fresh AdamW, whose first step
moves every weight by the learning rate: one or two steps are a shock and no training."""


def batch_sizes(count: int, size: int) -> list[int]:
    """How many examples each step of an epoch takes; a last batch of under four joins its neighbour.

    >>> batch_sizes(35, 16), batch_sizes(36, 16)
    ([16, 19], [16, 16, 4])
    """
    full, rest = divmod(count, size)
    if full and 0 < rest < SMALLEST_BATCH:
        return [size] * (full - 1) + [size + rest]
    return [size] * full + ([rest] if rest else [])


def batches(order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """An epoch's examples, a batch at a time."""
    at = 0
    for own in batch_sizes(len(order), size):
        yield order[at : at + own]
        at += own


def short_rounds(manifest: Manifest, batch_size: int, local_epochs: int) -> dict[str, int]:
    """Client -> its optimizer steps a round, of those that have too few."""
    steps = {
        client: len(batch_sizes(len(splits["train"]), batch_size)) * local_epochs for client, splits in manifest.items()
    }
    return {client: count for client, count in steps.items() if count < LEAST_STEPS}
