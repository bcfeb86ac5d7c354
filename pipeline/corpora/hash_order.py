"""A shuffle that is the same on every machine, and that adding a name does not change."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def hash_order(ids: Sequence[str], salt: str = "") -> list[str]:
    """Ids in the order of their salted hashes. Its first k are a random sample that grows with k."""
    return sorted(ids, key=lambda identity: hashlib.sha256(f"{salt}{identity}".encode()).digest())
