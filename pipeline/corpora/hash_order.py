"""A shuffle that is the same on every machine, and that adding a name does not change."""

import hashlib
from collections.abc import Iterable, Sequence

from pipeline.corpora.example import SPLITS, Split
from pipeline.corpora.text import normal

TENTH = 10


def hash_order(ids: Sequence[str], salt: str = "") -> list[str]:
    """Ids in the order of their salted hashes. Its first k are a random sample that grows with k."""
    return sorted(ids, key=lambda identity: hashlib.sha256(f"{salt}{identity}".encode()).digest())


def tenths(names: Sequence[str], texts: Iterable[tuple[str, str]] = ()) -> dict[str, Split]:
    """Name -> split: a tenth of the shuffled names, at least one, for test and for val each, the others for train.

    `texts`: (name, one of its texts). Names with an equal text, but for case and spaces, are in one split, unless fewer
    than three would be left to split.
    """
    from scipy.cluster.hierarchy import DisjointSet  # half a second, which other commands save

    alike, first = DisjointSet(names), dict[str, str]()
    for name, text in texts:
        if same := normal(text):
            alike.merge(name, first.setdefault(same, name))
    leader = {name: min(subset) for subset in alike.subsets() for name in subset}
    if len(set(leader.values())) < len(SPLITS):
        leader = dict(zip(names, names, strict=True))
    order = hash_order([*set(leader.values())])
    count = max(1, len(order) // TENTH)
    splits = dict.fromkeys(order, SPLITS[0]) | dict.fromkeys(order[count : 2 * count], SPLITS[1])
    splits |= dict.fromkeys(order[:count], SPLITS[2])
    return {name: splits[leader[name]] for name in names}
