"""How different clients' data are: the Jensen-Shannon divergence of what they talk about and of the words they use.

Lin, "Divergence Measures Based on the Shannon Entropy", IEEE Trans. Inf. Theory 1991. With M = (P + Q) / 2,

    JS(P, Q) = (KL(P ‖ M) + KL(Q ‖ M)) / 2,    in bits: 0 for equal, 1 for disjoint.

Topics are k-means clusters of sentence embeddings of the sources, made over all clients together; words are those of
the reference summaries, in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon

from pipeline.corpora.statistics import LOST, lost_letters
from pipeline.evaluation.intervals import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix = dict[str, dict[str, float]]  # client -> client -> divergence in bits

WORD = r"[a-z]+(?:'[a-z]+)?"
SHUFFLES = 100
SOURCES_A_TOPIC = 5


def jensen_shannon(counts: Array) -> Array:
    """The divergence between every two rows of counts, in bits: (rows, outcomes) -> (rows, rows)."""
    return np.stack([jensenshannon(counts, own[None], base=2, axis=1) for own in counts]) ** 2


def between_clients(counts: Array | csr_matrix, owners: Sequence[str]) -> tuple[Matrix, float]:
    """Every client against every other, and the mean over groups of the same sizes drawn at random.

    Few examples differ by chance alone, the fewer the more. `counts`: of every example, (examples, outcomes), dense or
    sparse. `owners`: the client of each.
    """
    clients = list(dict.fromkeys(owners))

    def divergences(number: NDArray[np.int64]) -> Array:
        return jensen_shannon(np.ascontiguousarray(np.eye(len(clients))[number].T @ counts))

    number, draw = np.array([clients.index(owner) for owner in owners]), np.random.default_rng(0)
    found, pairs = divergences(number), np.triu_indices(len(clients), 1)
    drawn = [divergences(draw.permutation(number))[pairs] for _ in range(SHUFFLES)]
    matrix = {a: dict(zip(clients, map(float, row), strict=True)) for a, row in zip(clients, found, strict=True)}
    return matrix, float(np.mean(drawn))


def word_counts(texts: Sequence[str]) -> csr_matrix:
    """How often each text uses each word, in the words' order: sparse (texts, words).

    Words are runs of a to z, or of any script where these leave out over 2% of all letters, or half of a text's.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    from pipeline.tasks.rouge import words_of

    latin = lost_letters("".join(texts)) <= LOST and all(lost_letters(text) < 0.5 for text in texts)
    how = {"token_pattern": WORD} if latin else {"analyzer": lambda text: words_of(text, "unicode")}
    return CountVectorizer(**how).fit_transform(texts)


def topic_counts(embeddings: Array, topics: int, seed: int = 0) -> Array:
    """Which cluster each source falls into, one-hot: (sources, clusters).

    `embeddings`: (sources, dimensions). `topics`: how many clusters; fewer where they would have under five sources.
    """
    from sklearn.cluster import KMeans

    count = max(2, min(topics, len(embeddings) // SOURCES_A_TOPIC))
    labels = KMeans(n_clusters=count, n_init=10, random_state=seed).fit_predict(embeddings)
    return np.asarray(np.eye(count)[labels])
