"""Batches with similar numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def in_batches(keys: Sequence[T], rows: Sequence[int], count: int) -> list[list[T]]:
    """Split keys, in their order, into at most `count` batches with similar numbers of rows.

    A last batch of two rows would take as many steps as a full one.

    Args:
        rows: each key's number of rows. A batch exceeds an even share by less than one key's rows.
    """
    batches: list[list[T]] = [[] for _ in range(count)]
    before, total = 0, sum(rows)
    for key, own in zip(keys, rows, strict=True):
        batches[before * count // total].append(key)
        before += own
    return [batch for batch in batches if batch]
