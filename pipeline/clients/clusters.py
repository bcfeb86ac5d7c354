"""Clusters of embedded texts, the labels of a task that has none; and silos of owners with similar texts.

Lin et al., FedNLP, Section 3.2: k-means of sentence embeddings. The clusters are those of the training texts.
Development and test texts belong to the nearest.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from pipeline.errors import QuorumError

CLUSTERS, STARTS = 10, 10
Vectors = NDArray[np.float32]


def clusters(train: Vectors, others: Vectors, seed: int, count: int = CLUSTERS) -> tuple[list[str], list[str]]:
    """The cluster, as a label, of each training and of each other text, whose unit vectors are (texts, width).

    Raises QuorumError if there are fewer training texts than clusters.
    """
    if len(train) < count:
        wrong = f"{len(train)} training texts or owners cannot make {count} clusters or silos"
        raise QuorumError(f"{wrong}; lower that number")
    found = KMeans(count, n_init=STARTS, random_state=seed).fit(train)
    nearest = found.predict(others) if len(others) else []
    width = len(str(count - 1))
    return [f"{own:0{width}d}" for own in found.labels_], [f"{own:0{width}d}" for own in nearest]


def silos(
    train: Vectors, owners: list[str], others: Vectors, their_owners: list[str], seed: int, count: int
) -> dict[str, str]:
    """Owner -> silo: k-means of the training owners' mean vectors. Owners without training texts join the nearest.

    `train` and `others` are (texts, width), and `owners` and `their_owners` name the owner of each text.

    Raises QuorumError if there are fewer owners than silos.
    """
    names, theirs = sorted(set(owners)), sorted(set(their_owners) - set(owners))
    means, other_means = _means(train, owners, names), _means(others, their_owners, theirs)
    mine, nearest = clusters(means, other_means, seed, count)
    return dict(zip((*names, *theirs), (*mine, *nearest), strict=True))


def _means(vectors: Vectors, owners: list[str], names: list[str]) -> Vectors:
    """The mean vector of each of these owners: (owners, width)."""
    which = np.array(owners)
    return np.array([vectors[which == name].mean(0) for name in names])
