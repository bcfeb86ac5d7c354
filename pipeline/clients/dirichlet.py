"""Partitions that a Dirichlet draw skews by label, by quantity or by both; and the uniform one.

Lin et al., "FedNLP: Benchmarking Federated Learning Methods for Natural Language Processing Tasks", NAACL Findings
2022, Section 3.2. With J clients, N examples and the pool's shares p of the labels:

    sizes    s_j = N / J, or 1 + z_j (N − J), z ~ Dir(β 1)
    labels   q_j ~ Dir(α p): α is the total, so that α = 1 over 20 labels is 0.05 each
    deal     client after client takes s_j q_j of each label; what is missing comes from the labels that are left

Each of the N examples goes to one client. The last clients get more of what is left than of what was drawn for them.
Whole numbers come from largest remainders. The draws of α are the same for every β.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import QuorumError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def drawing(seed: int, dataset: str, stream: str, clients: int, parameter: float | None) -> np.random.Generator:
    """A generator for one stream (`order`, `labels`, `quantity`), the same on every machine for the same arguments."""
    name = f"{seed}/{dataset}/{stream}/{clients}/{'' if parameter is None else format(parameter, 'g')}"
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")))


def by_largest_remainder(shares: Floats, total: int) -> Integers:
    """Whole numbers that sum to `total`, in proportion to shares that sum to 1: (n,) -> (n,).

    Each is rounded down; those with the largest remainders get one more (ties: the first).

    >>> by_largest_remainder(np.array([0.5, 0.3, 0.2]), 9)
    array([4, 3, 2])
    """
    exact = shares * total
    whole = np.floor(exact + 1e-9).astype(np.int64)  # 0.3 · 10 is a little less than 3
    first = np.argsort(-(exact - whole), kind="stable")[: total - int(whole.sum())]
    whole[first] += 1
    return whole


def sizes_of(shares: Floats, total: int, least: int = 1) -> Integers:
    """`least` examples a client, and the rest in proportion to shares that sum to 1, (clients,).

    A draw is never rejected, which would change the distribution.

    Raises QuorumError if there are too few examples for so many clients.
    """
    clients = len(shares)
    if total < clients * least:
        raise QuorumError(
            f"{clients} clients of at least {least} need {clients * least} examples, and there are {total}; lower "
            "clients or least"
        )
    return least + by_largest_remainder(shares, total - least * clients)


def deal(counts: Integers, sizes: Integers, wanted: Floats) -> Integers:
    """How many examples of each label each client gets: (clients, labels); rows sum to `sizes`, columns to `counts`.

    Args:
        counts: (labels,), how many examples there are.
        sizes: (clients,), with the same sum.
        wanted: (clients, labels), each client's shares q_j.
    """
    left = counts.copy()
    dealt = np.zeros(wanted.shape, dtype=np.int64)
    for client, size in enumerate(sizes):
        taken = np.minimum(by_largest_remainder(wanted[client], int(size)), left)
        left = left - taken
        short = int(size - taken.sum())
        if short:
            filled = by_largest_remainder(left / left.sum(), short)
            taken, left = taken + filled, left - filled
        dealt[client] = taken
    return dealt


def partition(
    ids: Sequence[str],
    labels: Sequence[str],
    clients: int,
    *,
    seed: int,
    dataset: str,
    alpha: float | None = None,
    beta: float | None = None,
    least: int = 1,
) -> list[list[str]]:
    """The ids of each client's examples.

    Args:
        labels: of the examples, in the order of `ids`; not used without `alpha`.
        alpha: how evenly labels are spread; None: every client draws from the whole pool.
        beta: how even the sizes are; None: all equal.
        least: the fewest examples that a client gets.

    Raises QuorumError if there are too few examples.
    """
    even = np.full(clients, 1 / clients)
    z = even if beta is None else drawing(seed, dataset, "quantity", clients, beta).dirichlet(np.full(clients, beta))
    sizes = sizes_of(z, len(ids), least)
    by_label: dict[str, list[str]] = {}
    for identity, label in zip(ids, labels, strict=True):
        by_label.setdefault("" if alpha is None else label, []).append(identity)
    order = drawing(seed, dataset, "order", clients, alpha)
    pools = [np.array(own, dtype=object)[order.permutation(len(own))] for _, own in sorted(by_label.items())]
    counts = np.array([len(pool) for pool in pools])
    wanted = np.ones((clients, 1))
    if alpha is not None:
        wanted = drawing(seed, dataset, "labels", clients, alpha).dirichlet(alpha * counts / len(ids), size=clients)
    taken = deal(counts, sizes, wanted)
    parts = [np.split(pool, np.cumsum(own)[:-1]) for pool, own in zip(pools, taken.T, strict=True)]
    return [[identity for part in own for identity in part] for own in zip(*parts, strict=True)]
