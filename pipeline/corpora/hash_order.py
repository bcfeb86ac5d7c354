"""A shuffle that is the same on every machine, and that adding a name does not change."""

import hashlib
from collections.abc import Sequence

from pipeline.corpora.example import Split

TENTH = 10


def hash_order(ids: Sequence[str], salt: str = "") -> list[str]:
    """Ids in the order of their salted hashes. Its first k are a random sample that grows with k."""
    return sorted(ids, key=lambda identity: hashlib.sha256(f"{salt}{identity}".encode()).digest())


def tenths(names: Sequence[str]) -> dict[str, Split]:
    """Name -> split: a tenth of the shuffled names, at least one, for test and for val each, the others for train."""
    order, count = hash_order(names), max(1, len(names) // TENTH)
    splits: dict[str, Split] = dict.fromkeys(order, "train")
    return splits | dict.fromkeys(order[count : 2 * count], "val") | dict.fromkeys(order[:count], "test")
