"""How different clients' data are: the Jensen-Shannon divergence of what they talk about and of the words they use.

Lin, "Divergence Measures Based on the Shannon Entropy", IEEE Trans. Inf. Theory 1991. With M = (P + Q) / 2,

    JS(P, Q) = (KL(P ‖ M) + KL(Q ‖ M)) / 2,    in bits: 0 for equal, 1 for disjoint.

Topics are k-means clusters of sentence embeddings of the sources, made over all clients together; words are those of
the reference summaries, in lower case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")

Array = NDArray[np.float64]
Matrix = dict[str, dict[str, float]]
"""client -> client -> divergence in bits."""


def jensen_shannon(p: Array, q: Array) -> float:
    """Of two vectors of counts, each (outcomes,), none of them all zero."""
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2

    def half(one: Array) -> float:
        seen = one > 0
        return float((one[seen] * np.log2(one[seen] / middle[seen])).sum()) / 2

    return half(p) + half(q)


def matrix(counts: Mapping[str, Array]) -> Matrix:
    """Every client against every other."""
    return {a: {b: jensen_shannon(p, q) for b, q in counts.items()} for a, p in counts.items()}


def word_counts(texts: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Client -> how often it uses each word that any client uses, in one order of words."""
    found = {
        client: Counter(word for text in own for word in _WORD.findall(text.lower())) for client, own in texts.items()
    }
    words = sorted(set().union(*found.values()))
    return {client: np.array([counter[word] for word in words], dtype=np.float64) for client, counter in found.items()}


def topic_counts(embeddings: Mapping[str, Array], topics: int, seed: int = 0) -> dict[str, Array]:
    """Client -> how many of its sources fall into each cluster.

    Args:
        embeddings: client -> (sources, dimensions).
        topics: how many clusters; fewer where there are fewer sources.
    """
    from sklearn.cluster import KMeans

    everything = np.concatenate(list(embeddings.values()))
    count = min(topics, len(everything))
    labels = KMeans(n_clusters=count, n_init=10, random_state=seed).fit_predict(everything)
    ends = np.cumsum([len(own) for own in embeddings.values()])
    parts = np.split(labels, ends[:-1])
    return {
        client: np.bincount(part, minlength=count).astype(np.float64)
        for client, part in zip(embeddings, parts, strict=True)
    }
