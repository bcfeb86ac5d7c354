"""How different clients' data are: the Jensen-Shannon divergence of what they talk about and of the words they use.

Lin, "Divergence Measures Based on the Shannon Entropy", IEEE Trans. Inf. Theory 1991. With M = (P + Q) / 2,

    JS(P, Q) = (KL(P ‖ M) + KL(Q ‖ M)) / 2,    in bits: 0 for equal, 1 for disjoint.

Topics are k-means clusters of sentence embeddings of the sources, made over all clients together; words are those of
the reference summaries, in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon

Array = NDArray[np.float64]
Matrix = dict[str, dict[str, float]]
"""client -> client -> divergence in bits."""

WORD = r"[a-z]+(?:'[a-z]+)?"
SHUFFLES = 100
SOURCES_A_TOPIC = 5


def between_clients(counts: Any, owners: Sequence[str]) -> tuple[Matrix, float]:
    """Every client against every other, and the mean over groups of the same sizes drawn at random.

    Few examples differ by chance alone, the fewer the more.

    Args:
        counts: of every example, (examples, outcomes), dense or sparse.
        owners: the client of each example.
    """
    clients = list(dict.fromkeys(owners))
    number = np.array([clients.index(owner) for owner in owners])

    def divergences(number: NDArray[np.int64]) -> dict[tuple[str, str], float]:
        sums = np.eye(len(clients))[number].T @ counts
        named = dict(zip(clients, sums, strict=True))
        return {(a, b): float(jensenshannon(named[a], named[b], base=2)) ** 2 for a, b in combinations(clients, 2)}

    found = divergences(number)
    draw = np.random.default_rng(0)
    drawn = [value for _ in range(SHUFFLES) for value in divergences(draw.permutation(number)).values()]
    matrix = {a: {b: found.get((a, b), found.get((b, a), 0.0)) for b in clients} for a in clients}
    return matrix, float(np.mean(drawn))


def word_counts(texts: Sequence[str]) -> Any:
    """How often each text uses each word, in the words' order: sparse (texts, words)."""
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(token_pattern=WORD).fit_transform(texts)


def topic_counts(embeddings: Array, topics: int, seed: int = 0) -> Array:
    """Which cluster each source falls into, one-hot: (sources, clusters).

    Args:
        embeddings: (sources, dimensions).
        topics: how many clusters; fewer where that would be less than a few sources each.
    """
    from sklearn.cluster import KMeans

    count = max(2, min(topics, len(embeddings) // SOURCES_A_TOPIC))
    labels = KMeans(n_clusters=count, n_init=10, random_state=seed).fit_predict(embeddings)
    return np.asarray(np.eye(count)[labels])
