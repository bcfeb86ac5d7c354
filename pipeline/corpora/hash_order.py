"""A fixed shuffle: the same on every machine, and no other when a name is added."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def hash_order(ids: Sequence[str], salt: str = "") -> list[str]:
    """A fixed shuffle, another for another salt: the first k of it are a sample that grows with k."""
    return sorted(ids, key=lambda identity: hashlib.sha256(f"{salt}{identity}".encode()).digest())
